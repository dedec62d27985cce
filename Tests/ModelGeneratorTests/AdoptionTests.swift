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
    #expect(result.notes.map(\.line) == [2, 4])
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

  @Test("What was adopted is not changed again, nor what is for Objective-C alone")
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

  @Test("What a person has to change is named and left alone")
  func byHand() {
    let source = "let a = #selector(Post.b)"
    let result = adopt(source)
    #expect(result.text == source)
    #expect(result.notes.map(\.isByHand) == [true])
  }

  @Test("Every other byte stays, line ends of Windows too")
  func bytes() {
    let source = "\u{FEFF}// é\r\n\tlet a = #keyPath( Post . title )\r\n"
    #expect(adopt(source).text == "\u{FEFF}// é\r\n\tlet a = \"title\"\r\n")
  }
}

extension String {
  fileprivate func components(_ part: String) -> Int { ranges(of: part).count + 1 }
}
