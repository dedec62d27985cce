import Foundation

/// Reads the attributes of an element, and reports the exact error of an invalid one.
struct ModelXMLFields {
  let element: ModelXMLElement
  let file: String

  func string(_ name: String) -> String? {
    element.attributes[name]
  }

  func required(_ name: String) throws -> String {
    guard let value = element.attributes[name], !value.isEmpty else {
      throw error("the attribute '\(name)' is missing", expected: "\(name)=\"…\"")
    }
    return value
  }

  func boolean(_ name: String, default fallback: Bool = false) throws -> Bool {
    guard let text = element.attributes[name] else { return fallback }
    guard let value = DefaultValue.boolean(text) else {
      throw error("\(name)=\"\(text)\"", expected: "YES or NO")
    }
    return value
  }

  func integer(_ name: String) throws -> Int? {
    guard let text = element.attributes[name], !text.isEmpty else { return nil }
    guard let value = Int(text), value >= 0, value <= Int(Int32.max) else {
      throw error("\(name)=\"\(text)\"", expected: "a whole number that is not negative")
    }
    return value
  }

  func number(_ name: String) throws -> Double? {
    guard let text = element.attributes[name], !text.isEmpty else { return nil }
    guard let value = Double(text), value.isFinite else {
      throw error("\(name)=\"\(text)\"", expected: "a number")
    }
    return value
  }

  func decimal(_ name: String) throws -> Decimal? {
    guard let text = element.attributes[name], !text.isEmpty else { return nil }
    guard let value = wholeDecimal(text) else {
      throw error("\(name)=\"\(text)\"", expected: "a number")
    }
    return value
  }

  func allowChildren(_ names: [String]) throws {
    for child in element.children where !names.contains(child.name) {
      throw ModelFileError(
        .malformed,
        file: file,
        line: child.line,
        element: child.label,
        found: "the element does not belong in \(element.label)",
        expected: names.isEmpty
          ? "no element here" : "one of " + names.map { "<\($0)>" }.joined(separator: ", ")
      )
    }
  }

  func userInfo() throws -> [AnyHashable: Any] {
    let entries = element.children(named: "userInfo").flatMap { $0.children(named: "entry") }
    var info: [AnyHashable: Any] = [:]
    for entry in entries {
      let fields = ModelXMLFields(element: entry, file: file)
      guard let key = fields.string("key") else { _ = try fields.required("key"); continue }
      info[key] = fields.string("value") ?? ""
    }
    return info
  }

  func error(
    _ found: String,
    expected: String,
    reason: ModelFileError.Reason = .malformed
  ) -> ModelFileError {
    ModelFileError(
      reason,
      file: file,
      line: element.line,
      element: element.label,
      found: found,
      expected: expected
    )
  }
}
