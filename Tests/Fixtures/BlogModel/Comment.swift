// Written as apps write it.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import Foundation
import OpenCoreData

#if canImport(ObjectiveC)
@objc(Comment)
#endif
open class Comment: NSManagedObject {
  public enum Kind: Int16 {
    case praise = 1
    case blame = 2
  }

  @NSManaged public var text: String?
  @NSManaged open var written: Date?
  @NSManaged open var likes: Int64
  @NSManaged open var kind: Kind
  @NSManaged public var words: [String]?
  @NSManaged public var labels: [String]?
  @NSManaged public var post: Post?
  @NSManaged public var replyTo: Comment?
  @NSManaged public var replies: Set<Comment>
  @NSManaged var primitiveText: String?
  @NSManaged private var secret: String?

  @NSManaged public func addToReplies(_ value: Comment)
  @NSManaged public func removeFromReplies(_ value: Comment)
  @NSManaged public func addToReplies(_ values: NSSet)
  @NSManaged public func removeFromReplies(_ values: NSSet)

  public var secretText: String? {
    get { secret }
    set { secret = newValue }
  }

  public var rawText: String? {
    get { primitiveText }
    set { primitiveText = newValue }
  }

  /// A type annotation that could refer to Foundation's unavailable type.
  public static func textExpression() -> NSExpression {
    let expression: NSExpression = NSExpression(forKeyPath: "text")
    return expression
  }
}

// Accessors of modeled properties, as Apple's guide writes them.
extension Comment {
  @NSManaged var primitiveHeading: String?
  @NSManaged var primitiveLanguage: String?

  /// A transient property that is computed at its first use.
  #if canImport(ObjectiveC)
  @objc
  #endif
  public var heading: String? {
    willAccessValue(forKey: "heading")
    let known = primitiveHeading
    didAccessValue(forKey: "heading")
    if let known { return known }
    let made = text.map { $0.prefix(1).uppercased() }
    primitiveHeading = made
    return made
  }

  #if canImport(ObjectiveC)
  @objc
  #endif
  public var language: String? {
    get {
      willAccessValue(forKey: "language")
      defer { didAccessValue(forKey: "language") }
      return primitiveLanguage
    }
    set {
      willChangeValue(forKey: "language")
      primitiveLanguage = newValue?.lowercased()
      didChangeValue(forKey: "language")
    }
  }
}

/// Overrides properties that are `@NSManaged` ones.
public final class DatedComment: Comment {
  public override var written: Date? {
    get { super.written ?? Date(timeIntervalSinceReferenceDate: 0) }
    set { super.written = newValue }
  }

  public override var likes: Int64 {
    get { super.likes }
    set { super.likes = max(0, newValue) }
  }

  public override var kind: Kind {
    get { super.kind }
    set { super.kind = newValue }
  }
}
