import Foundation
import OpenCoreData

/// The model of Apple's page on records for Core Data, created in code.
enum BlogModel {
  static func make() -> NSManagedObjectModel {
    let post = entity(
      "Post",
      [
        attribute("title", .stringAttributeType), attribute("content", .stringAttributeType),
        attribute("views", .integer64AttributeType), attribute("date", .dateAttributeType),
      ]
    )
    let imagePost = entity("ImagePost", [attribute("caption", .stringAttributeType)])
    let videoPost = entity("VideoPost", [attribute("length", .doubleAttributeType)])
    let attachment = entity("Attachment", [attribute("name", .stringAttributeType)])
    let imageData = entity("ImageData", [attribute("data", .binaryDataAttributeType)])
    let tag = entity(
      "Tag",
      [
        attribute("name", .stringAttributeType), attribute("uuid", .UUIDAttributeType),
        attribute("color", .transformableAttributeType),
      ]
    )
    post.subentities = [imagePost, videoPost]
    relate(
      (post, "attachments", true, .cascadeDeleteRule),
      (attachment, "post", false, .nullifyDeleteRule)
    )
    relate(
      (attachment, "imageData", false, .cascadeDeleteRule),
      (imageData, "attachment", false, .nullifyDeleteRule)
    )
    relate((post, "tags", true, .nullifyDeleteRule), (tag, "posts", true, .nullifyDeleteRule))
    let model = NSManagedObjectModel()
    model.entities = [post, imagePost, videoPost, attachment, imageData, tag]
    return model
  }

  static func entity(_ name: String, _ properties: [NSPropertyDescription]) -> NSEntityDescription {
    let entity = NSEntityDescription()
    entity.name = name
    entity.properties = properties
    return entity
  }

  static func attribute(
    _ name: String,
    _ type: NSAttributeType,
    _ change: (NSAttributeDescription) -> Void = { _ in }
  ) -> NSAttributeDescription {
    let attribute = NSAttributeDescription()
    attribute.name = name
    attribute.attributeType = type
    change(attribute)
    return attribute
  }

  typealias End = (
    entity: NSEntityDescription, name: String, isToMany: Bool, rule: NSDeleteRule
  )

  static func relate(_ left: End, _ right: End) {
    let one = relationship(left, to: right.entity)
    let other = relationship(right, to: left.entity)
    one.inverseRelationship = other
    other.inverseRelationship = one
    left.entity.properties += [one]
    right.entity.properties += [other]
  }

  private static func relationship(
    _ end: End,
    to destination: NSEntityDescription
  ) -> NSRelationshipDescription {
    let relationship = NSRelationshipDescription()
    relationship.name = end.name
    relationship.destinationEntity = destination
    relationship.maxCount = end.isToMany ? 0 : 1
    relationship.deleteRule = end.rule
    return relationship
  }
}
