package httpapi

// RouteCount is how many operations are served.
func RouteCount() int { return len(routes()) }
