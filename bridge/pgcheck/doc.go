// Package pgcheck reads a PostgreSQL server's settings as the bridge's own role
// may see them and says what is wrong or unsafe. It changes nothing. What
// cannot be seen is reported as unknown, not as good.
package pgcheck
