import Foundation
import OpenCoreData

/// A delegate that applies the changes that it receives, like an app's table view.
class FetchedResultsRecorder: NSObject, NSFetchedResultsControllerDelegate {
  var log: [String] = []
  /// The names of the books by section, changed only by the delegate's calls.
  var shown: [[String]] = []
  /// The information of the sections that were inserted and deleted.
  var sectionInfos: [any NSFetchedResultsSectionInfo] = []
  private var oldPaths: [IndexPath] = []
  private var newPaths: [(IndexPath, String)] = []
  private var deletedSections: [Int] = []
  private var insertedSections: [Int] = []

  /// Sets the initial results of a controller.
  func show(_ controller: NSFetchedResultsController<Book>) {
    shown = (controller.sections ?? []).map { section in
      (section.objects as? [Book] ?? []).compactMap(\.title)
    }
  }

  func controllerWillChangeContent(
    _ controller: NSFetchedResultsController<any NSFetchRequestResult>
  ) {
    log.append("will")
    oldPaths = []
    newPaths = []
    deletedSections = []
    insertedSections = []
  }

  func controller(
    _ controller: NSFetchedResultsController<any NSFetchRequestResult>,
    didChange anObject: Any,
    at indexPath: IndexPath?,
    for type: NSFetchedResultsChangeType,
    newIndexPath: IndexPath?
  ) {
    let name = (anObject as? NSManagedObject)?.value(forKey: "title") as? String ?? "?"
    let from = indexPath.map { "\($0.section).\($0.row)" } ?? "-"
    let to = newIndexPath.map { "\($0.section).\($0.row)" } ?? "-"
    log.append("\(type) \(name) \(from) \(to)")
    if let indexPath { oldPaths.append(indexPath) }
    if let newIndexPath { newPaths.append((newIndexPath, name)) }
  }

  func controller(
    _ controller: NSFetchedResultsController<any NSFetchRequestResult>,
    didChange sectionInfo: any NSFetchedResultsSectionInfo,
    atSectionIndex sectionIndex: Int,
    for type: NSFetchedResultsChangeType
  ) {
    log.append("\(type) section \(sectionInfo.name) \(sectionIndex)")
    sectionInfos.append(sectionInfo)
    if type == .delete { deletedSections.append(sectionIndex) }
    if type == .insert { insertedSections.append(sectionIndex) }
  }

  func controllerDidChangeContent(
    _ controller: NSFetchedResultsController<any NSFetchRequestResult>
  ) {
    log.append("did")
    // As in a table view: first all removals at old positions, then all insertions at new ones.
    for path in oldPaths.sorted().reversed() { shown[path.section].remove(at: path.item) }
    for section in deletedSections.sorted().reversed() { shown.remove(at: section) }
    for section in insertedSections.sorted() { shown.insert([], at: section) }
    for (path, name) in newPaths.sorted(by: { $0.0 < $1.0 }) {
      shown[path.section].insert(name, at: path.item)
    }
  }
}

/// A delegate that receives differences.
final class DifferenceRecorder: NSObject, NSFetchedResultsControllerDelegate {
  var differences: [CollectionDifference<NSManagedObjectID>] = []
  var otherCalls = 0

  func controller(
    _ controller: NSFetchedResultsController<any NSFetchRequestResult>,
    didChangeContentWith diff: CollectionDifference<NSManagedObjectID>
  ) {
    differences.append(diff)
  }

  func controllerWillChangeContent(
    _ controller: NSFetchedResultsController<any NSFetchRequestResult>
  ) {
    otherCalls += 1
  }
}
