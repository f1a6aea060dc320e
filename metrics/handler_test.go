package metrics

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func get(t *testing.T, h http.Handler, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	b, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(b)
}

func TestHandler(t *testing.T) {
	r := prometheus.NewRegistry()
	if err := NewProcess(r, Build{Version: "v1"}, nil); err != nil {
		t.Fatal(err)
	}
	var why []string
	h := Handler(HandlerOptions{Gatherer: r, Ready: func() []string { return why }})

	if code, body := get(t, h, "/metrics"); code != 200 || !strings.Contains(body, `holdfast_build_info{goversion="go`) {
		t.Errorf("/metrics: %d", code)
	}
	for _, path := range []string{"/livez", "/readyz"} {
		if code, body := get(t, h, path); code != 200 || body != "ok\n" {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
	why = []string{"recovering 3 of 1000 timelines", "the disk\nis full"}
	if code, body := get(t, h, "/readyz"); code != 503 || body != "recovering 3 of 1000 timelines\nthe disk is full\n" {
		t.Errorf("/readyz: %d %q", code, body)
	}
	if code, _ := get(t, h, "/livez"); code != 200 {
		t.Errorf("/livez: %d while only not ready", code)
	}
	if code, body := get(t, h, "/"); code != 200 || body != "/metrics\n/livez\n/readyz\n" {
		t.Errorf("/: %d %q", code, body)
	}
	if code, _ := get(t, h, "/debug/pprof/"); code != 404 {
		t.Errorf("/debug/pprof/ without the option: %d", code)
	}
	h = Handler(HandlerOptions{Gatherer: r, Pprof: true, Live: func() []string { return []string{"stuck"} }})
	if code, _ := get(t, h, "/debug/pprof/"); code != 200 {
		t.Errorf("/debug/pprof/ with the option: %d", code)
	}
	if code, body := get(t, h, "/livez"); code != 503 || body != "stuck\n" {
		t.Errorf("/livez: %d %q", code, body)
	}
}
