import Foundation
import OpenCoreData

/// The workload's classes, with the typed accessors that a generator would write.
public final class Post: NSManagedObject {
  private static let titleProperty = ManagedProperty<String?>("title")
  private static let contentProperty = ManagedProperty<String?>("content")
  private static let timestampProperty = ManagedProperty<Double>("timestamp")
  private static let scoreProperty = ManagedProperty<Int64>("score")
  private static let tagsProperty = ManagedProperty<Set<Tag>>("tags")
  private static let attachmentsProperty = ManagedProperty<Set<Attachment>>("attachments")
  private static let untypedTagsProperty = ManagedProperty<NSSet?>("tags")
  private static let untypedAttachmentsProperty = ManagedProperty<NSSet?>("attachments")

  var title: String? {
    get { self[Self.titleProperty] }
    set { self[Self.titleProperty] = newValue }
  }
  var content: String? {
    get { self[Self.contentProperty] }
    set { self[Self.contentProperty] = newValue }
  }
  var timestamp: Double {
    get { self[Self.timestampProperty] }
    set { self[Self.timestampProperty] = newValue }
  }
  var score: Int64 {
    get { self[Self.scoreProperty] }
    set { self[Self.scoreProperty] = newValue }
  }
  var tags: Set<Tag> {
    get { self[Self.tagsProperty] }
    set { self[Self.tagsProperty] = newValue }
  }
  var attachments: Set<Attachment> {
    get { self[Self.attachmentsProperty] }
    set { self[Self.attachmentsProperty] = newValue }
  }
  var untypedTags: NSSet? { self[Self.untypedTagsProperty] }
  var untypedAttachments: NSSet? { self[Self.untypedAttachmentsProperty] }
}

/// Each post has one attachment.
public final class Attachment: NSManagedObject {
  private static let nameProperty = ManagedProperty<String?>("name")
  private static let sizeProperty = ManagedProperty<Int64>("size")
  private static let postProperty = ManagedProperty<Post?>("post")

  var name: String? {
    get { self[Self.nameProperty] }
    set { self[Self.nameProperty] = newValue }
  }
  var size: Int64 {
    get { self[Self.sizeProperty] }
    set { self[Self.sizeProperty] = newValue }
  }
  var post: Post? {
    get { self[Self.postProperty] }
    set { self[Self.postProperty] = newValue }
  }
}

/// Each post has two tags.
public final class Tag: NSManagedObject {
  private static let nameProperty = ManagedProperty<String?>("name")

  var name: String? {
    get { self[Self.nameProperty] }
    set { self[Self.nameProperty] = newValue }
  }
}
