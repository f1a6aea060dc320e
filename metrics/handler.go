package metrics

import (
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// HandlerOptions says what a process shows over HTTP.
type HandlerOptions struct {
	Gatherer prometheus.Gatherer

	// Live returns why the process should be restarted; nothing means that it
	// is alive. nil: it is alive as long as it answers. A poisoned timeline is no
	// reason: a restart forced from outside would end the service of all the others.
	Live func() []string

	// Ready returns why the process cannot serve now; nothing means that it
	// can. nil: it always can.
	Ready func() []string

	// Pprof adds /debug/pprof/, which lets anyone who can reach the port slow the process down.
	Pprof bool
}

// Handler serves /metrics, /livez and /readyz. The last two answer 200 and
// "ok", or 503 and one reason per line.
func Handler(o HandlerOptions) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /livez", probe(o.Live))
	mux.HandleFunc("GET /readyz", probe(o.Ready))
	paths := []string{"/metrics", "/livez", "/readyz"}
	if o.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
		paths = append(paths, "/debug/pprof/")
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, strings.Join(paths, "\n")+"\n")
	})
	return mux
}

func probe(reasons func() []string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		if reasons != nil {
			if why := reasons(); len(why) > 0 {
				w.WriteHeader(http.StatusServiceUnavailable)
				for _, reason := range why {
					_, _ = fmt.Fprintln(w, strings.ReplaceAll(reason, "\n", " "))
				}
				return
			}
		}
		_, _ = io.WriteString(w, "ok\n")
	}
}
