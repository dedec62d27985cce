import Foundation

/// The delegate of a fetched results controller, which is notified of changes of its list.
///
/// ```swift
/// final class PostList: NSObject, NSFetchedResultsControllerDelegate {
///   private(set) var titles: [String] = []
///
///   func controllerDidChangeContent(
///     _ controller: NSFetchedResultsController<any NSFetchRequestResult>
///   ) {
///     titles = (controller.fetchedObjects ?? []).compactMap { ($0 as? Post)?.title }
///   }
/// }
/// ```
///
/// All methods are optional. A delegate is called on the queue of the controller's context, when
/// the pending changes are processed.
///
/// **Differs from Core Data:** the controller that a delegate is given is equal (`==`) to the one
/// that the app made and shows the same list, but is not always the same instance: Swift on Linux
/// cannot view a generic class as one of another type.
public protocol NSFetchedResultsControllerDelegate: NSObjectProtocol {
  /// Called before the calls for the changes.
  func controllerWillChangeContent(
    _ controller: NSFetchedResultsController<any NSFetchRequestResult>
  )

  /// Called after the calls for all changes.
  func controllerDidChangeContent(
    _ controller: NSFetchedResultsController<any NSFetchRequestResult>
  )

  /// Called for a change of an object.
  ///
  /// `indexPath` is the position in the old list, nil for an insertion; `newIndexPath` is the
  /// position in the new list, nil for a deletion.
  func controller(
    _ controller: NSFetchedResultsController<any NSFetchRequestResult>,
    didChange anObject: Any,
    at indexPath: IndexPath?,
    for type: NSFetchedResultsChangeType,
    newIndexPath: IndexPath?
  )

  /// Called for an inserted or deleted section.
  ///
  /// A deleted section is reported after the deletions of its objects, and its information has no
  /// objects; an inserted section is reported before the insertions of its objects.
  func controller(
    _ controller: NSFetchedResultsController<any NSFetchRequestResult>,
    didChange sectionInfo: any NSFetchedResultsSectionInfo,
    atSectionIndex sectionIndex: Int,
    for type: NSFetchedResultsChangeType
  )

  /// Called with all changes at once, as a difference of identifiers.
  ///
  /// It is only called for a controller without sections; if a delegate has this method, none of
  /// the others is called.
  func controller(
    _ controller: NSFetchedResultsController<any NSFetchRequestResult>,
    didChangeContentWith diff: CollectionDifference<NSManagedObjectID>
  )

  /// The title of a section in the index of sections.
  func controller(
    _ controller: NSFetchedResultsController<any NSFetchRequestResult>,
    sectionIndexTitleForSectionName sectionName: String
  ) -> String?
}

extension NSFetchedResultsControllerDelegate {
  /// Does nothing.
  public func controllerWillChangeContent(
    _ controller: NSFetchedResultsController<any NSFetchRequestResult>
  ) {}

  /// Does nothing.
  public func controllerDidChangeContent(
    _ controller: NSFetchedResultsController<any NSFetchRequestResult>
  ) {}

  /// Does nothing.
  public func controller(
    _ controller: NSFetchedResultsController<any NSFetchRequestResult>,
    didChange anObject: Any,
    at indexPath: IndexPath?,
    for type: NSFetchedResultsChangeType,
    newIndexPath: IndexPath?
  ) {}

  /// Does nothing.
  public func controller(
    _ controller: NSFetchedResultsController<any NSFetchRequestResult>,
    didChange sectionInfo: any NSFetchedResultsSectionInfo,
    atSectionIndex sectionIndex: Int,
    for type: NSFetchedResultsChangeType
  ) {}

  /// Marks that the delegate does not implement the method.
  public func controller(
    _ controller: NSFetchedResultsController<any NSFetchRequestResult>,
    didChangeContentWith diff: CollectionDifference<NSManagedObjectID>
  ) {
    controller.results.wantsDifferences = false
  }

  /// Leaves the title to the controller.
  public func controller(
    _ controller: NSFetchedResultsController<any NSFetchRequestResult>,
    sectionIndexTitleForSectionName sectionName: String
  ) -> String? {
    controller.results.delegateNamesTitles = false
    return nil
  }
}
