import Foundation

/// A section of a fetched results controller.
public protocol NSFetchedResultsSectionInfo: AnyObject {
  /// The section's name: the text of the section key path's value.
  var name: String { get }
  /// The section's title in an index of sections.
  var indexTitle: String? { get }
  /// The number of objects in the section.
  var numberOfObjects: Int { get }
  /// The objects of the section, in order.
  var objects: [Any]? { get }
}

/// A section at the time it was read.
///
/// An object, as in Core Data: apps compare the information that a delegate receives with that of the
/// controller, and pass it on in notifications.
final class FetchedResultsSectionInfo: NSObject, NSFetchedResultsSectionInfo {
  let name: String
  let indexTitle: String?
  let members: ArraySlice<NSManagedObject>

  init(name: String, indexTitle: String?, members: ArraySlice<NSManagedObject>) {
    self.name = name
    self.indexTitle = indexTitle
    self.members = members
  }

  var numberOfObjects: Int { members.count }
  var objects: [Any]? { Array(members) }
}
