package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// gauges are the numbers that their owners hold: they are asked anew for each
// reading, so that none can drift.
type gauges struct {
	from Sources

	ready, clients, sessions, open, continued, queued, asked, replied *prometheus.Desc
}

func newGauges(from Sources) *gauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
	}
	return &gauges{
		from:      from,
		ready:     desc("ready", "1 while asks and answers are taken."),
		clients:   desc("clients", "Clients connected."),
		sessions:  desc("sessions", "Sessions by the status of their row.", "status"),
		open:      desc("asks_open", "Asks that block now."),
		continued: desc("asks_continued", "Asks to be answered late, as far as rows list them."),
		queued:    desc("messages_queued", "Messages and replies that no agent has read, as far as rows list them."),
		asked:     desc("asks_total", "Asks that went out."),
		replied:   desc("replies_accepted_total", "Late answers accepted."),
	}
}

// Describe is part of prometheus.Collector.
func (g *gauges) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.ready, g.clients, g.sessions, g.open, g.continued, g.queued, g.asked, g.replied} {
		to <- d
	}
}

// Collect is part of prometheus.Collector.
func (g *gauges) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	ready := 1
	if g.from.Ready() != nil {
		ready = 0
	}
	gauge(g.ready, ready)
	gauge(g.clients, g.from.Clients())
	continued, queued := 0, 0
	statuses := map[string]int{}
	for _, row := range g.from.Rows() {
		statuses[row.Status]++
		continued += row.Continued()
		queued += len(row.Queued)
	}
	for status, n := range statuses {
		gauge(g.sessions, n, status)
	}
	gauge(g.continued, continued)
	gauge(g.queued, queued)
	stats := g.from.Questions()
	gauge(g.open, stats.Open)
	to <- prometheus.MustNewConstMetric(g.asked, prometheus.CounterValue, float64(stats.Asked))
	to <- prometheus.MustNewConstMetric(g.replied, prometheus.CounterValue, float64(stats.Replied))
}
