/// A section of a fetched results controller.
public protocol NSFetchedResultsSectionInfo {
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
struct FetchedResultsSectionInfo: NSFetchedResultsSectionInfo {
  let name: String
  let indexTitle: String?
  let members: ArraySlice<NSManagedObject>

  var numberOfObjects: Int { members.count }
  var objects: [Any]? { Array(members) }
}
