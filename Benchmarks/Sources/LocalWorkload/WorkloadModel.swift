import OpenCoreData

/// The workload's model, built in code.
enum WorkloadModel {
  /// The shared model of all containers of the process, as apps have one.
  static let shared = make()

  private static func make() -> NSManagedObjectModel {
    let post = entity("Post", class: "LocalWorkload.Post")
    let attachment = entity("Attachment", class: "LocalWorkload.Attachment")
    let tag = entity("Tag", class: "LocalWorkload.Tag")
    let attachments = relationship("attachments", to: attachment, many: true, .cascadeDeleteRule)
    let attachmentPost = relationship("post", to: post, many: false, .nullifyDeleteRule)
    let tags = relationship("tags", to: tag, many: true, .nullifyDeleteRule)
    let posts = relationship("posts", to: post, many: true, .nullifyDeleteRule)
    attachments.inverseRelationship = attachmentPost
    attachmentPost.inverseRelationship = attachments
    tags.inverseRelationship = posts
    posts.inverseRelationship = tags
    // Primary keys are assigned in order, so `number` equals the `id` of the raw tables.
    post.properties = [
      attribute("title", .stringAttributeType), attribute("content", .stringAttributeType),
      attribute("timestamp", .doubleAttributeType), attribute("score", .integer64AttributeType),
      attachments, tags,
    ]
    attachment.properties = [
      attribute("name", .stringAttributeType), attribute("size", .integer64AttributeType),
      attachmentPost,
    ]
    tag.properties = [attribute("name", .stringAttributeType), posts]
    let model = NSManagedObjectModel()
    model.entities = [post, attachment, tag]
    return model
  }

  private static func entity(_ name: String, class className: String) -> NSEntityDescription {
    let entity = NSEntityDescription()
    entity.name = name
    entity.managedObjectClassName = className
    return entity
  }

  private static func attribute(
    _ name: String,
    _ type: NSAttributeType
  ) -> NSAttributeDescription {
    let attribute = NSAttributeDescription()
    attribute.name = name
    attribute.attributeType = type
    attribute.isOptional = true
    return attribute
  }

  private static func relationship(
    _ name: String,
    to destination: NSEntityDescription,
    many: Bool,
    _ rule: NSDeleteRule
  ) -> NSRelationshipDescription {
    let relationship = NSRelationshipDescription()
    relationship.name = name
    relationship.destinationEntity = destination
    relationship.minCount = 0
    relationship.maxCount = many ? 0 : 1
    relationship.deleteRule = rule
    relationship.isOptional = true
    return relationship
  }
}
