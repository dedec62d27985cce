import Foundation

/// Parses the XML of a model file into a tree.
///
/// Foundation's parser on Linux stops the process for some damaged files (such as an attribute with
/// an unknown prefix), and does not detect every truncation. Model files use a small part of XML:
/// elements, attributes, comments and the predefined entities.
struct ModelXMLParser {
  /// The limit of nesting; the model editor writes at most six levels.
  static let maximumDepth = 32
  /// The limit of elements, far beyond the largest known model.
  static let maximumElements = 2_000_000

  private let file: String
  private let bytes: [UInt8]
  private var position = 0
  private var line = 1
  private var stack: [ModelXMLElement] = []
  private var root: ModelXMLElement?
  private var count = 0

  /// Whether text is kept: model files have only attributes, mapping files also have text.
  private let keepsText: Bool

  static func parse(
    _ data: Data,
    file: String,
    keepsText: Bool = false
  ) throws -> ModelXMLElement {
    var parser = ModelXMLParser(file: file, bytes: [UInt8](data), keepsText: keepsText)
    return try parser.parse()
  }

  private init(file: String, bytes: [UInt8], keepsText: Bool) {
    self.file = file
    self.bytes = bytes
    self.keepsText = keepsText
  }

  private mutating func parse() throws -> ModelXMLElement {
    guard !bytes.isEmpty else { throw failure("the file is empty", expected: "a <model> element") }
    if bytes.starts(with: [0xFE, 0xFF]) || bytes.starts(with: [0xFF, 0xFE]) {
      throw failure("the file is in UTF-16", expected: "UTF-8, as the model editor writes")
    }
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
    while position < bytes.count {
      if bytes[position] == UInt8(ascii: "<") {
        try readMarkup()
      } else {
        try readText()
      }
    }
    if let open = stack.last {
      throw failure("the file ends inside \(open.label)", expected: "</\(open.name)>")
    }
    guard let root else {
      throw failure("the file has no element", expected: "a <model> element")
    }
    return root
  }

  // MARK: Markup

  private mutating func readMarkup() throws {
    if take("<!--") {
      try skip(until: "-->", what: "a comment")
    } else if take("<![CDATA[") {
      guard !stack.isEmpty else {
        throw failure("text outside of an element", expected: "a <model> element")
      }
      try skip(until: "]]>", what: "a CDATA section")
    } else if take("<?") {
      try skip(until: "?>", what: "a processing instruction")
    } else if take("<!DOCTYPE") {
      try skipDocumentType()
    } else if take("</") {
      try readEndTag()
    } else {
      advance()
      try readStartTag()
    }
  }

  private mutating func skipDocumentType() throws {
    guard root == nil, stack.isEmpty else {
      throw failure("a document type after the beginning", expected: "an element")
    }
    while let byte = current {
      // Declarations inside a document could define entities; model files have none.
      if byte == UInt8(ascii: "[") {
        throw failure("declarations in the document type", expected: "a plain model file")
      }
      advance()
      if byte == UInt8(ascii: ">") { return }
    }
    throw failure("the file ends inside a document type", expected: ">")
  }

  private mutating func readEndTag() throws {
    let name = try readName("the name of the element that ends")
    skipSpace()
    guard let open = stack.last else {
      throw failure("</\(name)> ends nothing", expected: "the end of the file")
    }
    guard name == open.name else {
      throw failure("</\(name)>", expected: "</\(open.name)>", element: open)
    }
    guard take(">") else {
      throw failure("</\(name) does not end", expected: ">", element: open)
    }
    stack.removeLast()
  }

  private mutating func readStartTag() throws {
    let start = line
    let name = try readName("the name of an element")
    guard root == nil || !stack.isEmpty else {
      throw failure("a second outermost element <\(name)>", expected: "the end of the file")
    }
    count += 1
    guard stack.count < Self.maximumDepth, count <= Self.maximumElements else {
      throw failure(
        "elements are nested too deeply or too many",
        expected: "at most \(Self.maximumDepth) levels and \(Self.maximumElements) elements"
      )
    }
    var attributes: [String: String] = [:]
    while true {
      let hadSpace = skipSpace()
      if take("/>") {
        add(ModelXMLElement(name: name, attributes: attributes, line: start), isOpen: false)
        return
      }
      if take(">") {
        add(ModelXMLElement(name: name, attributes: attributes, line: start), isOpen: true)
        return
      }
      let element = ModelXMLElement(name: name, attributes: attributes, line: line)
      guard current != nil else {
        throw failure("the file ends inside <\(name)", expected: "> or />", element: element)
      }
      guard hadSpace else {
        throw failure("no space before an attribute", expected: "a space", element: element)
      }
      let key = try readName("the name of an attribute of <\(name)>, > or />")
      guard attributes[key] == nil else {
        throw failure(
          "the attribute '\(key)' occurs twice",
          expected: "it once",
          element: element
        )
      }
      skipSpace()
      guard take("=") else {
        throw failure("the attribute '\(key)' has no value", expected: "=", element: element)
      }
      skipSpace()
      attributes[key] = try readValue(of: key, element)
    }
  }

  private mutating func add(_ element: ModelXMLElement, isOpen: Bool) {
    if let parent = stack.last { parent.children.append(element) } else { root = element }
    if isOpen { stack.append(element) }
  }

  // MARK: Names, values and text

  private mutating func readName(_ expected: String) throws -> String {
    let start = position
    while let byte = current, isNameByte(byte, isFirst: position == start) { advance() }
    guard position > start else {
      let found = current.map { "the character '\(Character(UnicodeScalar($0)))'" }
      throw failure(found ?? "the end of the file", expected: expected)
    }
    return try text(bytes[start..<position])
  }

  private func isNameByte(_ byte: UInt8, isFirst: Bool) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "_"), UInt8(ascii: ":"), 0x80...:
      true
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."):
      !isFirst
    default:
      false
    }
  }

  private mutating func readValue(of key: String, _ element: ModelXMLElement) throws -> String {
    guard let quote = current, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
      throw failure(
        "the value of '\(key)' is not quoted",
        expected: "a quotation mark",
        element: element
      )
    }
    advance()
    var value: [UInt8] = []
    while let byte = current {
      switch byte {
      case quote:
        advance()
        return try text(value[...])
      case UInt8(ascii: "&"):
        value += try readReference()
      case UInt8(ascii: "<"):
        throw failure(
          "'<' in the value of '\(key)'",
          expected: "a closing quotation mark",
          element: element
        )
      case 0x09, 0x0A, 0x0D:
        // Line ends and tabs in attributes are spaces (XML 1.0, 3.3.3).
        value.append(0x20)
        advance()
      default:
        guard byte >= 0x20 else { throw control(byte) }
        value.append(byte)
        advance()
      }
    }
    throw failure(
      "the file ends inside the value of '\(key)'",
      expected: "a closing quotation mark",
      element: element
    )
  }

  private mutating func readText() throws {
    var kept: [UInt8] = []
    while let byte = current, byte != UInt8(ascii: "<") {
      let isSpace = byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
      guard isSpace || byte >= 0x20 else { throw control(byte) }
      guard isSpace || !stack.isEmpty else {
        throw failure("text outside of an element", expected: "a <model> element")
      }
      if byte == UInt8(ascii: "&") {
        kept += try readReference()
      } else {
        if keepsText { kept.append(byte) }
        advance()
      }
    }
    if keepsText { stack.last?.text += try text(kept[...]) }
  }

  private static let entities: [String: UInt8] = [
    "amp": UInt8(ascii: "&"), "lt": UInt8(ascii: "<"), "gt": UInt8(ascii: ">"),
    "quot": UInt8(ascii: "\""), "apos": UInt8(ascii: "'"),
  ]

  private mutating func readReference() throws -> [UInt8] {
    advance()
    let start = position
    while let byte = current, byte != UInt8(ascii: ";"), position - start < 12 { advance() }
    let name = String(decoding: bytes[start..<position], as: UTF8.self)
    guard take(";") else {
      throw failure("the reference &\(name) does not end", expected: ";")
    }
    if let known = Self.entities[name] { return [known] }
    let number: UInt32? =
      if name.hasPrefix("#x") {
        UInt32(name.dropFirst(2), radix: 16)
      } else if name.hasPrefix("#") {
        UInt32(name.dropFirst())
      } else {
        nil
      }
    guard let scalar = number.flatMap(Unicode.Scalar.init), scalar.value != 0 else {
      throw failure(
        "the reference &\(name);",
        expected: "&amp; &lt; &gt; &quot; &apos; or a number"
      )
    }
    return Array(String(Character(scalar)).utf8)
  }

  private func text(_ slice: ArraySlice<UInt8>) throws -> String {
    guard let text = String(validating: slice, as: UTF8.self) else {
      throw failure("bytes that are not UTF-8", expected: "UTF-8")
    }
    return text
  }

  // MARK: Moving

  private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

  private mutating func advance() {
    if position < bytes.count, bytes[position] == 0x0A { line += 1 }
    position += 1
  }

  private mutating func take(_ text: StaticString) -> Bool {
    let length = text.utf8CodeUnitCount
    guard position + length <= bytes.count else { return false }
    let matches = text.withUTF8Buffer { expected in
      for index in 0..<length where bytes[position + index] != expected[index] { return false }
      return true
    }
    if matches { position += length }
    return matches
  }

  @discardableResult
  private mutating func skipSpace() -> Bool {
    let start = position
    while let byte = current, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D {
      advance()
    }
    return position > start
  }

  private mutating func skip(until end: StaticString, what: String) throws {
    while position < bytes.count {
      if take(end) { return }
      advance()
    }
    throw failure("the file ends inside \(what)", expected: "\(end)")
  }

  private func control(_ byte: UInt8) -> ModelFileError {
    failure("the control character \(byte)", expected: "text")
  }

  private func failure(
    _ found: String,
    expected: String,
    element: ModelXMLElement? = nil
  ) -> ModelFileError {
    ModelFileError(
      .malformed,
      file: file,
      line: line,
      element: (element ?? stack.last)?.label,
      found: found,
      expected: expected
    )
  }
}
