/// Lines of a page in Prometheus' text format.
package struct MetricLines {
  package private(set) var text = ""

  package init() {}

  package mutating func add(
    _ name: String,
    _ type: String,
    _ help: String,
    _ value: String,
    labels: String = ""
  ) {
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n\(name)\(labels) \(value)\n"
  }
}
