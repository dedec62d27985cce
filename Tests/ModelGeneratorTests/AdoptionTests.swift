import ModelGenerator
import Testing

@Suite("Adopting existing sources")
struct AdoptionTests {
  private func adopt(_ text: String) -> SourceAdopter.Result {
    SourceAdopter.adopt(SourceFile(path: "Post.swift", text: text))
  }

  @Test("An attribute on a line of its own is put inside #if")
  func ownLine() {
    let result = adopt(
      """
      // A post.
      @objc(Post)
      public class Post: NSManagedObject {
          @objc(addTagsObject:)
          @NSManaged public func addToTags(_ value: Tag)
      }
      """
    )
    #expect(
      result.text == """
        // A post.
        import CoreData
        #if canImport(ObjectiveC)
        @objc(Post)
        #endif
        public class Post: NSManagedObject {
            #if canImport(ObjectiveC)
            @objc(addTagsObject:)
            #endif
            @NSManaged public func addToTags(_ value: Tag)
        }
        """
    )
    #expect(result.notes.map(\.line) == [2, 3, 4])
  }

  @Test("A type of Foundation's that CoreData declares on Linux adds its import")
  func movedTypes() {
    #expect(
      adopt("import Foundation\n\nclass Names: ValueTransformer {}\n").text
        == "import Foundation\nimport CoreData\n\nclass Names: ValueTransformer {}\n"
    )
  }

  @Test(
    "A file that uses Core Foundation, which Foundation does not bring on Linux, gets its import"
  )
  func coreFoundation() {
    let source = "import Foundation\n\nlet now = CFAbsoluteTimeGetCurrent()\n"
    let result = adopt(source)
    #expect(
      result.text
        == "import Foundation\nimport CoreFoundation\n\nlet now = CFAbsoluteTimeGetCurrent()\n"
    )
    #expect(result.notes.map(\.line) == [3])
    #expect(adopt(result.text).text == result.text)
    #expect(
      adopt("import Foundation\nclass A: NSManagedObject { var o: CFRunLoopObserver? }\n").text
        .hasPrefix("import Foundation\nimport CoreData\nimport CoreFoundation\n")
    )
    #expect(adopt("let a = CFBundleVersion\n").notes.isEmpty)
  }

  @Test("An attribute beside others gets lines of its own")
  func sameLine() {
    #expect(
      adopt("  @objc dynamic var a = 1\n").text == """
          #if canImport(ObjectiveC)
          @objc
          #endif
          dynamic var a = 1

        """
    )
    #expect(
      adopt("@NSManaged @objc var a: Int\n").text == """
        import CoreData
        @NSManaged
        #if canImport(ObjectiveC)
        @objc
        #endif
        var a: Int

        """
    )
  }

  @Test("#keyPath becomes the names of the properties")
  func keyPaths() {
    let result = adopt("let a = #keyPath(Post.author.name), b = #keyPath(title) // both")
    #expect(result.text == "let a = \"author.name\", b = \"title\" // both")
  }

  @Test("Adopted code, and code for Objective-C alone, is not changed")
  func idempotence() {
    let source = """
      @objcMembers final class Post: NSManagedObject {
        @objc(a) var a: String { #keyPath(Post.title) }
        #if canImport(ObjectiveC)
        @objc func b() { print(#keyPath(Post.title)) }
        #endif
      }
      """
    let once = adopt(source)
    #expect(once.text.contains("@objc func b() { print(#keyPath(Post.title)) }"))
    #expect(once.text.components("#if canImport(ObjectiveC)") == 4)
    let twice = adopt(once.text)
    #expect(twice.text == once.text)
    #expect(twice.notes.isEmpty)
  }

  @Test("A file that uses Core Data without importing it gets the import after its own imports")
  func missingImport() {
    let result = adopt("// Store\nimport Foundation\n\nlet a: NSManagedObjectContext? = nil\n")
    #expect(
      result.text
        == "// Store\nimport Foundation\nimport CoreData\n\nlet a: NSManagedObjectContext? = nil\n"
    )
    #expect(adopt(result.text).text == result.text)
    let there =
      "#if canImport(CoreData)\nimport CoreData\n#endif\nlet a: NSManagedObjectContext? = nil\n"
    #expect(adopt(there).text == there)
    #expect(adopt("let a = NSObject()").text == "let a = NSObject()")
  }

  @Test("Imports of frameworks that Linux lacks move inside #if and get a note with a remedy")
  func missingFrameworks() {
    let result = adopt("import Combine\r\nimport CoreData\r\nimport os.log\r\n")
    #expect(
      result.text
        == "#if canImport(Combine)\r\nimport Combine\r\n#endif\r\nimport CoreData\r\n"
        + "#if canImport(os)\r\nimport os.log\r\n#else\r\nimport AppleShims\r\n#endif\r\n"
    )
    #expect(result.notes.filter(\.isByHand).map(\.line) == [1])
    #expect(adopt(result.text).text == result.text)
    #expect(result.notes.contains { $0.text.contains("OpenCombine") })
    let guarded = "#if os(iOS)\nimport UIKit\n#endif\n"
    #expect(adopt(guarded).text == guarded)
    #expect(adopt(guarded).notes.isEmpty)
    let other = "#if !os(iOS)\nimport UIKit\n#endif\n"
    #expect(adopt(other).text != other)
  }

  @Test("A module that another one stands in for on Linux gets that one in #else")
  func substitutes() {
    let result = adopt("internal import OSLog\nimport Darwin\n")
    #expect(
      result.text == """
        #if canImport(OSLog)
        internal import OSLog
        #else
        internal import AppleShims
        #endif
        #if canImport(Darwin)
        import Darwin
        #else
        import Glibc
        #endif

        """
    )
    #expect(result.notes.allSatisfy { !$0.isByHand })
    #expect(adopt(result.text).text == result.text)
  }

  @Test("A part of a module that Linux has as a whole gets the whole module in #else")
  func submodules() {
    let result = adopt(
      "@preconcurrency import CoreData.CoreDataErrors\npublic import class Foundation.ValueTransformer\n"
        + "import class CoreData.NSManagedObject\nimport struct Foundation.Date\nlet a: NSManagedObject?\n"
    )
    #expect(
      result.text == """
        #if canImport(ObjectiveC)
        @preconcurrency import CoreData.CoreDataErrors
        #else
        import CoreData
        #endif
        #if canImport(ObjectiveC)
        public import class Foundation.ValueTransformer
        #else
        public import CoreData
        #endif
        import class CoreData.NSManagedObject
        import struct Foundation.Date
        let a: NSManagedObject?

        """
    )
    #expect(adopt(result.text).text == result.text)
  }

  @Test("A file with an autorelease pool imports AppleShims where Objective-C is missing")
  func autoreleasePool() {
    let result = adopt("import Foundation\n\nautoreleasepool { a() }\n")
    #expect(
      result.text == """
        import Foundation
        #if !canImport(ObjectiveC)
        import AppleShims
        #endif

        autoreleasepool { a() }

        """
    )
    #expect(result.notes.map(\.isByHand) == [false])
    #expect(adopt(result.text).text == result.text)
    for use in ["objc_sync_enter(a)\nobjc_sync_exit(a)", "let delay = 2 * Int64(NSEC_PER_SEC)"] {
      let text = adopt("import Foundation\n\(use)\n").text
      #expect(text.ranges(of: "import AppleShims").count == 1)
      #expect(adopt(text).text == text)
    }
    let logging = "import os\nautoreleasepool { a() }\n"
    #expect(adopt(logging).text.components("AppleShims") == 2)
  }

  @Test("A log imported outside of Linux alone does not stand for the import of AppleShims")
  func guardedLogs() {
    let result = adopt(
      "import Foundation\n#if !os(Linux)\nimport os\n#endif\nautoreleasepool { a() }\n"
    )
    #expect(
      result.text
        == "import Foundation\n#if !canImport(ObjectiveC)\nimport AppleShims\n#endif\n"
        + "#if !os(Linux)\nimport os\n#endif\nautoreleasepool { a() }\n"
    )
    #expect(adopt(result.text).text == result.text)
  }

  @Test(
    "Clauses that Linux never compiles are not changed",
    arguments: [
      "#if !os(Linux)\n@objc class A {}\n#endif\n",
      "#if !canImport(Glibc) && DEBUG\n@objc class A {}\n#endif\n",
      "#if os(Linux)\nimport Glibc\n#else\nimport Darwin\n#endif\n",
      "#if os(macOS) || (os(iOS) && DEBUG)\n@objc class A {}\n#endif\n",
      "#if DEBUG\nlet a = 1\n#elseif !canImport(UIKit)\nlet a = 2\n#else\nimport UIKit\n#endif\n",
      "#if targetEnvironment(simulator)\nimport UIKit\n#endif\n",
    ]
  )
  func excludedClauses(_ source: String) {
    #expect(adopt(source).text == source)
    #expect(adopt(source).notes.isEmpty)
  }

  @Test(
    "Clauses that Linux can compile are changed",
    arguments: [
      "os(Linux) || os(macOS)", "!os(macOS)", "DEBUG", "canImport(CoreData)", "!os(Linux) || DEBUG",
      "swift(>=6)", "!(os(iOS) && DEBUG)",
    ]
  )
  func includedClauses(_ condition: String) {
    let text = adopt("#if \(condition)\n@objc class A {}\n#endif\n").text
    #expect(
      text
        == "#if \(condition)\n#if canImport(ObjectiveC)\n@objc\n#endif\nclass A {}\n#endif\n"
    )
  }

  @Test("A bundle of a class is left where SwiftPM does not compile it")
  func otherBuilds() {
    let source =
      "#if SWIFT_PACKAGE\nlet a = Bundle.module\n#else\nlet a = Bundle(for: A.self)\n#endif\n"
    #expect(adopt(source).text == source)
    #expect(adopt(source).notes.isEmpty)
  }

  @Test("A cast of a fetch request, which fails on Linux, becomes a typed request")
  func casts() {
    let result = adopt(
      "import CoreData\nlet a = Post.fetchRequest() as! NSFetchRequest<Post>\n"
        + "let b = model.fetchRequestTemplate(forName: \"b\") as! NSFetchRequest<Post>\n"
    )
    #expect(
      result.text == "import CoreData\n"
        + "let a = NSFetchRequest<Post>(entityName: Post.entity().name ?? \"Post\")\n"
        + "let b = model.fetchRequestTemplate(forName: \"b\") as! NSFetchRequest<Post>\n"
    )
    #expect(result.notes.map(\.isByHand) == [false, true])
    #expect(adopt("let a = b as! Post").notes.isEmpty)
  }

  @Test("The remedy for a cast depends on the type of results and on what is cast")
  func castRemedies() {
    func note(_ source: String) -> String? { adopt("import CoreData\n" + source).notes.first?.text }
    #expect(
      note("let a = b as! NSFetchRequest<NSDictionary>")
        == "a cast to NSFetchRequest<NSDictionary> fails on Linux; "
        + "make NSFetchRequest<NSDictionary>(sameAs: b)"
    )
    #expect(
      note("let a = Post.fetchRequest() as! NSFetchRequest<NSDictionary>")
        == "a cast to NSFetchRequest<NSDictionary> fails on Linux; "
        + "make NSFetchRequest<NSDictionary>(entityName: \"…\") and set its predicate"
    )
    #expect(
      note("let a = b as? NSFetchRequest<NSManagedObject>")
        == "a cast to NSFetchRequest<NSManagedObject> fails on Linux; "
        + "make NSFetchRequest<NSManagedObject>(sameAs: b)"
    )
    #expect(
      note("let a = b.copy() as! NSFetchRequest<Post>")
        == "a cast to NSFetchRequest<Post> fails on Linux unless the copied request is one; "
        + "make NSFetchRequest<Post>(sameAs: b.copy())"
    )
  }

  @Test("The Foundation prefix of a type that CoreData declares on Linux is removed")
  func qualifiedTypes() {
    let result = adopt(
      "import CoreData\nclass A: Foundation.ValueTransformer {}\nlet b = Foundation.NSExpression.self\n"
    )
    #expect(
      result.text == "import CoreData\nclass A: ValueTransformer {}\nlet b = NSExpression.self\n"
    )
    #expect(adopt("let a: Foundation.Date").text == "let a: Foundation.Date")
  }

  @Test(
    "A change that only a person can make is named with its line and a remedy",
    arguments: [
      ("extension A {\n  override func b() {}\n}", "extension"),
      ("\nlet a = Bundle(for: A.self)", "Bundle.module"),
      ("\nlet a = Bundle.main.url(forResource: \"A\", withExtension: \"momd\")", "Bundle.module"),
      ("#if SWIFT_PACKAGE\n#else\n#endif\nlet a = Bundle(for: A.self)", "Bundle.module"),
      ("\nlet a = userDefaults.value(forKey: b) as? Date", "object(forKey:)"),
      ("\nUserDefaults.standard.setValue(a, forKey: b)", "set(_:forKey:)"),
      ("\nc.addObserver(self, selector: #selector(a), name: b, object: nil)", "using:"),
      ("\nbutton.addTarget(self, action: #selector(a), for: b)", "inside #if"),
      (
        "\nlet s = NSSortDescriptor(key: k, ascending: true, "
          + "selector: #selector(NSString.localizedStandardCompare(_:)))",
        "ordering:) takes .localizedStandard"
      ),
      (
        "\nlet s = NSSortDescriptor(key: k, ascending: true, "
          + "selector: #selector(NSString.caseInsensitiveCompare))",
        "ordering:) takes .caseInsensitive"
      ),
      ("import CoreData\nd(a as! NSFetchRequest<NSFetchRequestResult>)", "(sameAs: a)"),
    ]
  )
  func remedies(source: String, remedy: String) {
    let result = adopt(source)
    #expect(result.text == source)
    #expect(result.notes.map(\.isByHand) == [true])
    #expect(result.notes.map(\.line) == [source.hasPrefix("#if") ? 4 : 2])
    #expect(result.notes.first?.text.contains(remedy) == true, "\(result.notes)")
  }

  @Test("An override in a class, and a bundle without a model, are not changed")
  func nothingToSay() {
    let source =
      "class A: B {\n  override func c() { _ = Bundle.main.url(forResource: \"a\", withExtension: \"txt\") }\n}"
    #expect(adopt(source).notes.isEmpty)
  }

  @Test("A change to make by hand is reported and not made")
  func byHand() {
    let source = "let a = #selector(Post.b)"
    let result = adopt(source)
    #expect(result.text == source)
    #expect(result.notes.map(\.isByHand) == [true])
  }

  @Test("All other bytes are unchanged, including CRLF line ends")
  func bytes() {
    let source = "\u{FEFF}// é\r\n\tlet a = #keyPath( Post . title )\r\n"
    #expect(adopt(source).text == "\u{FEFF}// é\r\n\tlet a = \"title\"\r\n")
  }
}

extension String {
  fileprivate func components(_ part: String) -> Int { ranges(of: part).count + 1 }
}
