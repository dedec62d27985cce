import BlogModel
import Foundation
import OpenCoreData
import Testing

// The Testing module has types of these names.
private typealias Comment = BlogModel.Comment
private typealias Tag = BlogModel.Tag

/// Classes that implement accessors of modeled properties themselves.
@Suite("Accessors of the app's own")
struct OwnAccessorTests {
  private let container: NSPersistentContainer
  private var context: NSManagedObjectContext { container.viewContext }

  init() {
    container = NSPersistentContainer(name: "Blog")
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    ]
    container.loadPersistentStores { _, error in #expect(error == nil) }
  }

  private func comment(_ text: String) -> Comment {
    let comment = Comment(context: context)
    comment.text = text
    return comment
  }

  @Test("A transformer is found by the name of its class")
  func transformer() throws {
    let comment = comment("abc")
    comment.labels = ["x", "y"]
    try context.save()
    let transformer = ValueTransformer(forName: NSValueTransformerName("LabelsTransformer"))
    #expect(transformer is LabelsTransformer)
    #expect(
      transformer?.transformedValue(["x", "y"]) as? Data == Data(#"["x","y"]"#.utf8)
    )
    context.refreshAllObjects()
    #expect(comment.labels == ["x", "y"])
  }
}
