"""The Grafana dashboards of the chart, written as tables of panels: `python -m monitoring` makes their JSON files."""
