import Foundation
import FoundationXML

/// One element of a model file, with the line it begins on.
final class ModelXMLElement {
  let name: String
  let attributes: [String: String]
  let line: Int
  fileprivate(set) var children: [ModelXMLElement] = []

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

/// Reads XML into a small tree, so that errors can name lines and links can be made in any order.
final class ModelXMLDocument: NSObject, XMLParserDelegate {
  /// No model editor nests deeper than six.
  static let maximumDepth = 32
  /// Far beyond the largest model known; a guard against nonsense.
  static let maximumElements = 2_000_000

  private let file: String
  private var stack: [ModelXMLElement] = []
  private var root: ModelXMLElement?
  private var count = 0
  private var failure: ModelFileError?

  private init(file: String) {
    self.file = file
  }

  static func parse(_ data: Data, file: String) throws -> ModelXMLElement {
    guard !data.isEmpty else {
      throw ModelFileError(
        .malformed,
        file: file,
        line: 1,
        found: "the file is empty",
        expected: "a <model> element"
      )
    }
    let document = ModelXMLDocument(file: file)
    let parser = XMLParser(data: data)
    parser.shouldResolveExternalEntities = false
    parser.delegate = document
    let isWhole = parser.parse()
    if let failure = document.failure { throw failure }
    guard isWhole, let root = document.root else {
      throw ModelFileError(
        .malformed,
        file: file,
        line: parser.lineNumber > 0 ? parser.lineNumber : 1,
        element: document.stack.last?.label,
        found: document.problem(parser.parserError),
        expected: document.stack.last.map { "XML that goes on until </\($0.name)>" }
          ?? "a <model> element"
      )
    }
    return root
  }

  private func problem(_ error: (any Error)?) -> String {
    guard let error = error as NSError? else { return "the XML is malformed" }
    return "the XML is malformed (parser error \(error.code))"
  }

  func parser(
    _ parser: XMLParser,
    didStartElement elementName: String,
    namespaceURI: String?,
    qualifiedName qName: String?,
    attributes attributeDict: [String: String]
  ) {
    let element = ModelXMLElement(
      name: elementName,
      attributes: attributeDict,
      line: max(parser.lineNumber, 1)
    )
    count += 1
    if stack.count >= Self.maximumDepth || count > Self.maximumElements {
      failure =
        failure
        ?? ModelFileError(
          .malformed,
          file: file,
          line: element.line,
          element: element.label,
          found: "elements are nested too deeply or too many",
          expected: "at most \(Self.maximumDepth) levels and \(Self.maximumElements) elements"
        )
      parser.abortParsing()
      return
    }
    if let parent = stack.last {
      parent.children.append(element)
    } else if root == nil {
      root = element
    }
    stack.append(element)
  }

  func parser(
    _ parser: XMLParser,
    didEndElement elementName: String,
    namespaceURI: String?,
    qualifiedName qName: String?
  ) {
    if !stack.isEmpty { stack.removeLast() }
  }
}
