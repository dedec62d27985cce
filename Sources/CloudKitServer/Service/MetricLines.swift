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
    add(name, type, help, values: [(labels, value)])
  }

  /// A metric with labels, a line for each of their values.
  package mutating func add(
    _ name: String,
    _ type: String,
    _ help: String,
    values: [(labels: String, value: String)]
  ) {
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n"
    for value in values { text += "\(name)\(value.labels) \(value.value)\n" }
  }
}
