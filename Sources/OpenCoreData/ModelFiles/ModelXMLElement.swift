/// One element of a model file, with the line it begins on.
final class ModelXMLElement {
  let name: String
  let attributes: [String: String]
  let line: Int
  var children: [ModelXMLElement] = []
  /// The text directly inside, where the parser was asked to keep it.
  var text = ""

  init(name: String, attributes: [String: String], line: Int) {
    self.name = name
    self.attributes = attributes
    self.line = line
  }

  /// How error messages spell the element.
  var label: String {
    guard let name = attributes["name"] else { return "<\(self.name)>" }
    return "<\(self.name) name=\"\(name)\">"
  }

  func children(named name: String) -> [ModelXMLElement] {
    children.filter { $0.name == name }
  }
}
