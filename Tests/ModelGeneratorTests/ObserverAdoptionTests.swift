import ModelGenerator
import Testing

@Suite("Adopting observers with selectors")
struct ObserverAdoptionTests {
  private func adopt(_ text: String) -> SourceAdopter.Result {
    SourceAdopter.adopt(SourceFile(path: "Store.swift", text: text))
  }

  /// A class with a method and a statement that makes it an observer.
  private func observing(_ selector: String, with method: String, of type: String = "A") -> String {
    """
    class \(type) {
    \(method)
    func start() {
    c.addObserver(self, selector: #selector(\(selector)), name: d, object: nil)
    }
    }

    """
  }

  @Test(
    "An observer's method that throws is tried, and one that is asynchronous is left to be changed by hand",
    arguments: [
      ("m(_:)", "func m(_ n: Notification) throws {}", "{ try? $0.m($1) }"),
      ("m", "func m() throws {}", "{ observer, _ in try? observer.m() }"),
      ("m(_:)", "func m(_ n: Notification) async {}", nil),
    ]
  )
  func effects(selector: String, method: String, closure: String?) {
    let result = adopt(observing(selector, with: method))
    #expect(result.notes.contains { $0.isByHand } == (closure == nil))
    #expect(result.text.contains("#else") == (closure != nil))
    if let closure { #expect(result.text.contains("object: nil) \(closure)"), "\(result.text)") }
  }

  @Test("An observer's selector gets the closure of AppleShims in #else")
  func observers() {
    let result = adopt(
      """
      import CoreData
      final class Store {
        init(_ context: NSManagedObjectContext) {
          NotificationCenter.default.addObserver(
            self, selector: #selector(didSave(_:)),
            name: .NSManagedObjectContextDidSave, object: context)
          center.addObserver(self, selector: #selector(Self.plain), name: name, object: nil)
          center.addObserver(self, selector: #selector(elsewhere(note:)), name: name, object: nil)
        }
        @objc func didSave(_ notification: Notification) {}
        @objc func plain() {}
      }
      """
    )
    #expect(
      result.text == """
        import CoreData
        #if !canImport(ObjectiveC)
        import AppleShims
        #endif
        final class Store {
          init(_ context: NSManagedObjectContext) {
            #if canImport(ObjectiveC)
            NotificationCenter.default.addObserver(
              self, selector: #selector(didSave(_:)),
              name: .NSManagedObjectContextDidSave, object: context)
            #else
            NotificationCenter.default.addObserver(self, name: .NSManagedObjectContextDidSave, object: context) { $0.didSave($1) }
            #endif
            #if canImport(ObjectiveC)
            center.addObserver(self, selector: #selector(Self.plain), name: name, object: nil)
            #else
            center.addObserver(self, name: name, object: nil) { observer, _ in observer.plain() }
            #endif
            #if canImport(ObjectiveC)
            center.addObserver(self, selector: #selector(elsewhere(note:)), name: name, object: nil)
            #else
            center.addObserver(self, name: name, object: nil) { $0.elsewhere(note: $1) }
            #endif
          }
          #if canImport(ObjectiveC)
          @objc
          #endif
          func didSave(_ notification: Notification) {}
          #if canImport(ObjectiveC)
          @objc
          #endif
          func plain() {}
        }
        """
    )
    #expect(result.notes.allSatisfy { !$0.isByHand })
    #expect(adopt(result.text).text == result.text)
    for method in ["func a(_ note: NSNotification) {}", "func a(b: Int, c: Int) {}"] {
      let source =
        "class A {\n\(method)\nfunc b() {\nc.addObserver(self, selector: #selector(a), "
        + "name: d, object: nil)\n}\n}\n"
      #expect(adopt(source).text == source)
      #expect(adopt(source).notes.map(\.isByHand) == [true])
    }
  }

  @Test("A semicolon after a statement that is put inside a condition is dropped")
  func semicolons() {
    let first = "c.addObserver(self, selector: #selector(a), name: d, object: nil)"
    let source = "class A {\n@objc func a() {}\nfunc b() {\n\(first); x()\n\(first);\n}\n}\n"
    let text = adopt(source).text
    #expect(!text.contains(";"), "\(text)")
    #expect(text.contains("#endif\nx()\n"), "\(text)")
    #expect(adopt(text).text == text)
  }

  @Test("The names in an observer's arguments are adopted, and a second run changes nothing")
  func observerArguments() {
    let result = adopt(
      "import Foundation\nclass A {\n@objc func a() {}\nfunc b() {\n"
        + "c.addObserver(self, selector: #selector(a), "
        + "name: NSManagedObjectContext.didSaveObjectsNotification, object: d[#keyPath(A.e)])\n}\n}\n"
    )
    #expect(result.text.contains("import CoreData\n"), "\(result.text)")
    #expect(!result.text.contains("#keyPath"), "\(result.text)")
    #expect(result.text.ranges(of: "object: d[\"e\"])").count == 2, "\(result.text)")
    #expect(adopt(result.text).text == result.text)
  }

  @Test("An observer's method is the one of its own type")
  func ownMethods() {
    let plain = observing("refresh", with: "@objc func refresh() {}")
    let source =
      plain + observing("refresh", with: "@objc func refresh(_ note: Notification) {}", of: "B")
      + observing("self.refresh", with: "", of: "C") + "extension C { @objc func refresh() {} }\n"
      + observing("A.refresh", with: "", of: "D")
    let text = adopt(source).text
    let calls = text.split(separator: "\n").filter {
      $0.contains("{ $0") || $0.contains("{ observer")
    }
    #expect(
      calls.map { $0.drop { $0 != "{" } } == [
        "{ observer, _ in observer.refresh() }", "{ $0.refresh($1) }",
        "{ observer, _ in observer.refresh() }", "{ observer, _ in observer.refresh() }",
      ]
    )
    #expect(adopt(source).notes.allSatisfy { !$0.isByHand })
    #expect(adopt(text).text == text)
  }

  @Test(
    "A selector whose method the file does not decide is left",
    arguments: [
      // Either of the two other types can be the superclass.
      "class B { func a() {} }\nclass C { func a(_ note: Notification) {} }\nclass A: B {\n",
      "class A {\nfunc a() {}\nfunc a(_ note: Notification) {}\n",
      "class A {\nstatic func a() {}\n",
    ]
  )
  func undecided(_ start: String) {
    let source =
      start
      + "func b() {\nc.addObserver(self, selector: #selector(a), name: d, object: nil)\n}\n}\n"
    #expect(adopt(source).text == source)
    #expect(adopt(source).notes.map(\.isByHand) == [true])
  }

  @Test("A function inside another one is not an observer's method")
  func localFunctions() {
    let source = observing(
      "a(_:)",
      with: "func b() { func a(_ number: Int) {} }\nfunc a(_ note: Notification) {}"
    )
    #expect(adopt(source).text.contains("{ $0.a($1) }"))
  }
}
