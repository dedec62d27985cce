// Written as apps write it.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import Foundation
import OpenCoreData

/// A class that no other file can name.
private final class Draft: NSManagedObject {
  @NSManaged var text: String
  @NSManaged var priority: Int32
  @NSManaged var next: Draft?
  @NSManaged var previous: Draft?
  @NSManaged var related: Set<Draft>
  @NSManaged private var note: String?

  @NSManaged func addToRelated(_ value: Draft)

  func write(_ text: String) { note = text.uppercased() }

  var noted: String? { note }
}

/// Another such class, with properties of the names and types that others have.
private final class DraftFolder: NSManagedObject {
  @NSManaged var text: String
  @NSManaged var name: String?
}

/// The drafts of a model that is built in code.
public struct Drafts {
  private let context: NSManagedObjectContext

  public init() throws {
    func attribute(_ name: String, _ type: NSAttributeType) -> NSAttributeDescription {
      let attribute = NSAttributeDescription()
      attribute.name = name
      attribute.attributeType = type
      attribute.isOptional = true
      return attribute
    }
    func relationship(_ name: String, maxCount: Int) -> NSRelationshipDescription {
      let relationship = NSRelationshipDescription()
      relationship.name = name
      relationship.maxCount = maxCount
      relationship.isOptional = true
      return relationship
    }
    let entity = NSEntityDescription()
    entity.name = "Draft"
    entity.managedObjectClassName = NSStringFromClass(Draft.self)
    let next = relationship("next", maxCount: 1)
    let previous = relationship("previous", maxCount: 1)
    let related = relationship("related", maxCount: 0)
    for (one, other) in [(next, previous), (previous, next), (related, related)] {
      one.destinationEntity = entity
      one.inverseRelationship = other
    }
    entity.properties = [
      attribute("text", .stringAttributeType), attribute("priority", .integer32AttributeType),
      attribute("note", .stringAttributeType), next, previous, related,
    ]
    let model = NSManagedObjectModel()
    model.entities = [entity]
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    try coordinator.addPersistentStore(
      ofType: NSInMemoryStoreType,
      configurationName: nil,
      at: nil,
      options: nil
    )
    context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
    context.persistentStoreCoordinator = coordinator
  }

  /// Adds a chain of drafts, each related to the first one.
  public func add(_ texts: [String]) throws {
    try context.performAndWait {
      var drafts: [Draft] = []
      for (index, text) in texts.enumerated() {
        let draft = Draft(context: context)
        draft.text = text
        draft.priority = Int32(index)
        draft.write(text)
        draft.previous = drafts.last
        drafts.first?.addToRelated(draft)
        drafts.append(draft)
      }
      try context.save()
      context.reset()
    }
  }

  /// A line for each draft: its text, its note, the next one's text and the related ones' texts.
  public func lines() throws -> [String] {
    try context.performAndWait {
      let request = NSFetchRequest<Draft>(entityName: "Draft")
      request.sortDescriptors = [NSSortDescriptor(keyPath: \Draft.priority, ascending: true)]
      return try context.fetch(request).map { draft in
        let related = draft.related.map(\.text).sorted().joined(separator: ",")
        return "\(draft.text) \(draft.noted ?? "-") \(draft.next?.text ?? "-") \(related)"
      }
    }
  }
}
