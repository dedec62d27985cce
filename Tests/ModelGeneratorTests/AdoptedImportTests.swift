import ModelGenerator
import Testing

@Suite("Imports and protocols of adopted sources")
struct AdoptedImportTests {
  private func adopt(_ text: String) -> SourceAdopter.Result {
    SourceAdopter.adopt(SourceFile(path: "Feed.swift", text: text))
  }

  @Test(
    "A name of a module that Foundation brings on Apple's platforms gets its import",
    arguments: [
      ("let parser = XMLParser(data: data)", "FoundationXML", "canImport(FoundationXML)"),
      ("func f(_ r: URLRequest) {}", "FoundationNetworking", "canImport(FoundationNetworking)"),
      ("class A: ObservableObject {}", "AppleShims", "!canImport(ObjectiveC)"),
      ("class A { @Published var b = 1 }", "AppleShims", "!canImport(ObjectiveC)"),
      ("let a = String(localized: \"b\", bundle: .module)", "AppleShims", "!canImport(ObjectiveC)"),
    ]
  )
  func imports(statement: String, module: String, condition: String) {
    let result = adopt("import Foundation\n\n\(statement)\n")
    #expect(
      result.text
        == "import Foundation\n#if \(condition)\nimport \(module)\n#endif\n\n\(statement)\n"
    )
    #expect(result.notes.map(\.line) == [3])
    #expect(adopt(result.text).text == result.text)
  }

  @Test("A file that imports OpenCombine gets no second ObservableObject")
  func openCombine() {
    let source =
      "#if canImport(Combine)\nimport Combine\n#else\nimport OpenCombine\n#endif\n"
      + "class A: ObservableObject {}\n"
    #expect(adopt(source).text == source)
  }

  @Test(
    "A protocol that @objc restricts to classes is so on Linux too",
    arguments: [
      ("@objc protocol A {}", "protocol A: AnyObject {}"),
      (
        "@objc public protocol A<B> { associatedtype B }",
        "protocol A<B>: AnyObject { associatedtype B }"
      ),
      ("@objc(Aa) protocol A: B {}", "protocol A: AnyObject, B {}"),
      ("@objc protocol A: NSObjectProtocol {}", "protocol A: NSObjectProtocol {}"),
      ("@objc protocol A: AnyObject {}", "protocol A: AnyObject {}"),
      ("protocol A {}", "protocol A {}"),
    ]
  )
  func classBound(source: String, declaration: String) {
    let result = adopt(source + "\n")
    #expect(result.text.hasSuffix(declaration + "\n"), "\(result.text)")
    #expect(result.notes.allSatisfy { !$0.isByHand })
    #expect(adopt(result.text).text == result.text)
  }

  @Test("A protocol that an earlier run adopted is restricted to classes by the next one")
  func adoptedEarlier() {
    let source = "#if canImport(ObjectiveC)\n@objc\n#endif\n"
    #expect(adopt(source + "protocol A {}\n").text == source + "protocol A: AnyObject {}\n")
  }

  @Test("The line for an optional requirement names the calls too")
  func optionalRequirement() {
    let notes = adopt("@objc protocol A {\n  @objc optional func b()\n}\n").notes
    #expect(notes.filter(\.isByHand).map(\.line) == [2])
    #expect(notes.contains { $0.text.contains("drop the ? of its calls") })
  }
}
