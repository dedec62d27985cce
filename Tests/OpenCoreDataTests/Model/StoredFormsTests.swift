import Foundation
import OpenCoreData
import Testing

// Foundation's class of this name cannot be instantiated.
private typealias NSExpression = OpenCoreData.NSExpression

/// A value that apps store in transformable attributes.
final class Shade: NSObject, NSSecureCoding {
  static let supportsSecureCoding = true
  let red: Double

  init(red: Double) {
    self.red = red
  }

  init?(coder: NSCoder) {
    red = coder.decodeDouble(forKey: "red")
  }

  func encode(with coder: NSCoder) {
    coder.encode(red, forKey: "red")
  }
}

/// As in Apple's documentation: a list of classes, and a name to register it.
final class ShadeTransformer: NSSecureUnarchiveFromDataTransformer, @unchecked Sendable {
  static let name = NSValueTransformerName(rawValue: "StoredFormsShadeTransformer")

  override class var allowedTopLevelClasses: [AnyClass] { [Shade.self] }

  static func register() {
    ValueTransformer.setValueTransformer(ShadeTransformer(), forName: name)
  }
}

/// Converts text to bytes and back, without an archiver.
final class BackwardsTransformer: ValueTransformer, @unchecked Sendable {
  override class func transformedValueClass() -> AnyClass { NSData.self }
  override class func allowsReverseTransformation() -> Bool { true }

  override func transformedValue(_ value: Any?) -> Any? {
    (value as? String).map { Data($0.reversed().map(String.init).joined().utf8) }
  }

  override func reverseTransformedValue(_ value: Any?) -> Any? {
    (value as? Data).map { String(String(decoding: $0, as: UTF8.self).reversed()) }
  }
}

@Suite("Derived, transformable and external values")
struct StoredFormsTests {
  private static func derived(
    _ name: String,
    _ type: NSAttributeType,
    _ expression: NSExpression
  ) -> NSDerivedAttributeDescription {
    let attribute = NSDerivedAttributeDescription()
    attribute.name = name
    attribute.attributeType = type
    attribute.derivationExpression = expression
    return attribute
  }

  private static func pair(
    _ one: NSEntityDescription,
    _ name: String,
    _ other: NSEntityDescription,
    _ back: String
  ) {
    let many = NSRelationshipDescription()
    many.name = name
    many.destinationEntity = other
    let single = NSRelationshipDescription()
    single.name = back
    single.destinationEntity = one
    single.maxCount = 1
    many.inverseRelationship = single
    single.inverseRelationship = many
    one.properties.append(many)
    other.properties.append(single)
  }

  private static func model() -> NSManagedObjectModel {
    let post = NSEntityDescription()
    post.name = "Post"
    let comment = NSEntityDescription()
    comment.name = "Comment"
    let shade = ModelParts.attribute("shade", .transformableAttributeType)
    shade.valueTransformerName = ShadeTransformer.name.rawValue
    let secret = ModelParts.attribute("secret", .transformableAttributeType)
    secret.valueTransformerName = "StoredFormsBackwards"
    let photo = ModelParts.attribute("photo", .binaryDataAttributeType)
    photo.allowsExternalBinaryDataStorage = true
    comment.properties = [
      ModelParts.attribute("likes", .integer32AttributeType),
      derived("postTitle", .stringAttributeType, NSExpression(forKeyPath: "post.title")),
    ]
    post.properties = [
      ModelParts.attribute("title", .stringAttributeType), shade, secret, photo,
      ModelParts.attribute("tags", .transformableAttributeType),
      derived("upper", .stringAttributeType, NSExpression(format: "uppercase:(title)")),
      derived("lower", .stringAttributeType, NSExpression(format: "lowercase:(title)")),
      derived("plain", .stringAttributeType, NSExpression(format: "canonical:(title)")),
      derived("saved", .dateAttributeType, NSExpression(format: "now()")),
      derived("commentCount", .integer32AttributeType, NSExpression(format: "comments.@count")),
      derived("allLikes", .integer32AttributeType, NSExpression(format: "comments.@sum.likes")),
    ]
    pair(post, "comments", comment, "post")
    let model = NSManagedObjectModel()
    model.entities = [post, comment]
    return model
  }

  private func with(
    _ body: (NSManagedObjectContext, Library) throws -> Void
  ) throws {
    ShadeTransformer.register()
    ValueTransformer.setValueTransformer(
      BackwardsTransformer(),
      forName: NSValueTransformerName("StoredFormsBackwards")
    )
    let library = try Library(model: Self.model())
    let context = library.context()
    try context.performAndWait { try body(context, library) }
  }

  private func new(_ name: String, _ context: NSManagedObjectContext) -> NSManagedObject {
    NSEntityDescription.insertNewObject(forEntityName: name, into: context)
  }

  @Test("Derived attributes are updated by each save")
  func derivedAttributes() throws {
    try with { context, _ in
      let post = new("Post", context)
      post.setValue("Crème Brûlée", forKey: "title")
      #expect(post.value(forKey: "upper") == nil)
      let comments = [3, 4].map { likes in
        let comment = new("Comment", context)
        comment.setValue(likes, forKey: "likes")
        comment.setValue(post, forKey: "post")
        return comment
      }
      try context.save()
      context.refreshAllObjects()
      #expect(post.value(forKey: "upper") as? String == "CRÈME BRÛLÉE")
      #expect(post.value(forKey: "lower") as? String == "crème brûlée")
      #expect(post.value(forKey: "plain") as? String == "creme brulee")
      #expect(post.value(forKey: "saved") is Date)
      #expect(post.value(forKey: "commentCount") as? Int == 2)
      #expect(post.value(forKey: "allLikes") as? Int == 7)
      #expect(comments[0].value(forKey: "postTitle") as? String == "Crème Brûlée")
      comments[0].setValue(10, forKey: "likes")
      context.delete(comments[1])
      post.setValue("Tea", forKey: "title")
      try context.save()
      context.refreshAllObjects()
      #expect(post.value(forKey: "commentCount") as? Int == 1)
      #expect(post.value(forKey: "allLikes") as? Int == 10)
      #expect(post.value(forKey: "upper") as? String == "TEA")
      #expect(comments[0].value(forKey: "postTitle") as? String == "Tea")
      let request = NSFetchRequest<NSManagedObject>(entityName: "Post")
      request.predicate = NSPredicate(format: "allLikes > 9 AND plain == 'tea'")
      try #expect(context.count(for: request) == 1)
    }
  }

  @Test("Transformable values are converted by their transformers when written and read")
  func transformers() throws {
    try with { context, library in
      let post = new("Post", context)
      post.setValue(Shade(red: 0.5), forKey: "shade")
      post.setValue("hidden", forKey: "secret")
      post.setValue(["a", "b"], forKey: "tags")
      try context.save()
      let identifier = post.objectID
      let other = library.context()
      try other.performAndWait {
        let same = try other.existingObject(with: identifier)
        #expect((same.value(forKey: "shade") as? Shade)?.red == 0.5)
        #expect(same.value(forKey: "secret") as? String == "hidden")
        #expect(same.value(forKey: "tags") as? [String] == ["a", "b"])
      }
    }
  }

  @Test("Transformers are registered by name, and the built-in ones are registered")
  func registry() {
    ShadeTransformer.register()
    #expect(ValueTransformer(forName: ShadeTransformer.name) is ShadeTransformer)
    #expect(ValueTransformer.valueTransformerNames().contains(ShadeTransformer.name))
    #expect(ValueTransformer(forName: .secureUnarchiveFromDataTransformerName) != nil)
    let negate = ValueTransformer(forName: .negateBooleanTransformerName)
    #expect(negate?.transformedValue(true) as? Bool == false)
    let isNil = ValueTransformer(forName: .isNilTransformerName)
    #expect(isNil?.transformedValue(nil) as? Bool == true)
    let isNotNil = ValueTransformer(forName: .isNotNilTransformerName)
    #expect(isNotNil?.transformedValue("x") as? Bool == true)
    #expect(ValueTransformer(forName: NSValueTransformerName("Nobody")) == nil)
  }

  @Test("Large data is stored in a file beside the store, which is removed with its value")
  func externalData() throws {
    try with { context, library in
      let folder = library.folder.appendingPathComponent(".Library_SUPPORT/_EXTERNAL_DATA")
      func files() -> Int {
        (try? FileManager.default.contentsOfDirectory(atPath: folder.path))?.count ?? 0
      }
      let large = Data(repeating: 7, count: 300_000)
      let post = new("Post", context)
      post.setValue(Data([1]), forKey: "photo")
      try context.save()
      #expect(files() == 0)
      post.setValue(large, forKey: "photo")
      try context.save()
      #expect(files() == 1)
      context.refresh(post, mergeChanges: false)
      #expect(post.value(forKey: "photo") as? Data == large)
      post.setValue(Data(repeating: 8, count: 200_000), forKey: "photo")
      try context.save()
      #expect(files() == 1)
      context.delete(post)
      try context.save()
      #expect(files() == 0)
    }
  }
}
