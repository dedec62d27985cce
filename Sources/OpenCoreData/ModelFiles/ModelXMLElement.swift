/// An element of a model file, with its line.
final class ModelXMLElement {
  let name: String
  let attributes: [String: String]
  let line: Int
  var children: [ModelXMLElement] = []
  /// The text directly inside, if the parser keeps it.
  var text = ""

  init(name: String, attributes: [String: String], line: Int) {
    self.name = name
    self.attributes = attributes
    self.line = line
  }

  /// The element in error messages.
  var label: String {
    guard let name = attributes["name"] else { return "<\(self.name)>" }
    return "<\(self.name) name=\"\(name)\">"
  }

  func children(named name: String) -> [ModelXMLElement] {
    children.filter { $0.name == name }
  }
}
