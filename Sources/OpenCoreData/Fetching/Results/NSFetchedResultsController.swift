import Foundation

/// Provides the results of a fetch in sections and updates them while objects change.
///
/// ```swift
/// let request = NSFetchRequest<Post>(entityName: "Post")
/// request.sortDescriptors = [NSSortDescriptor(key: "created", ascending: false)]
/// let controller = NSFetchedResultsController(
///   fetchRequest: request,
///   managedObjectContext: context,
///   sectionNameKeyPath: nil,
///   cacheName: nil
/// )
/// controller.delegate = list
/// try controller.performFetch()
/// ```
///
/// A controller with a delegate observes the changes of its context; one without keeps the results
/// of ``performFetch()``. It must be used on the queue of its context.
///
/// **Differs from Core Data:** a delegate is held weakly; section information that is cached lives
/// as long as the process; with a fetch limit or offset the list is fetched again after each change.
/// An object that another context changed so that it matches enters the list with the merge, also
/// where this context has not read it before.
open class NSFetchedResultsController<ResultType>: NSObject {
  private(set) var results: FetchedResults
  private var typedObjects: [ResultType] = []
  private var typedVersion = 0

  /// The request whose results are provided.
  public let fetchRequest: NSFetchRequest<ResultType>

  /// Creates a controller.
  ///
  /// - Parameters:
  ///   - fetchRequest: A request with sort descriptors, for managed objects; where they are nil,
  ///     `performFetch()` throws. With an empty array the order is that of the stores, and new objects
  ///     come last. Where there are sections, the first descriptor must put objects of one section next
  ///     to each other.
  ///   - context: The context that fetches, and whose changes are observed.
  ///   - sectionNameKeyPath: The key path of the section's name; nil for one section.
  ///   - name: The name under which section information is cached; nil to cache none.
  public init(
    fetchRequest: NSFetchRequest<ResultType>,
    managedObjectContext context: NSManagedObjectContext,
    sectionNameKeyPath: String?,
    cacheName name: String?
  ) {
    self.fetchRequest = fetchRequest
    results = FetchedResults(
      request: fetchRequest,
      context: context,
      sectionNameKeyPath: sectionNameKeyPath,
      cacheName: name
    )
    super.init()
    results.facade = { [weak self] in self?.facade }
    results.titleOfController = { [weak self] in self?.sectionIndexTitle(forSectionName: $0) }
  }

  /// Creates a controller whose fetch fails, to be passed to the methods of a delegate.
  public override convenience init() {
    self.init(
      fetchRequest: NSFetchRequest(),
      managedObjectContext: NSManagedObjectContext(.mainQueue),
      sectionNameKeyPath: nil,
      cacheName: nil
    )
  }

  /// A controller of another static type with the same list.
  ///
  /// A second designated initializer would keep subclasses from inheriting `init()`.
  private convenience init(_ results: FetchedResults, fetchRequest: NSFetchRequest<ResultType>) {
    self.init(
      fetchRequest: fetchRequest,
      managedObjectContext: results.context,
      sectionNameKeyPath: results.sectionNameKeyPath,
      cacheName: results.cacheName
    )
    self.results = results
  }

  private lazy var facade: NSFetchedResultsController<any NSFetchRequestResult> =
    self as? NSFetchedResultsController<any NSFetchRequestResult>
    ?? NSFetchedResultsController<any NSFetchRequestResult>(
      results,
      fetchRequest: NSFetchRequest<any NSFetchRequestResult>(sameAs: fetchRequest)
    )

  // MARK: Settings

  /// The context that fetches.
  open var managedObjectContext: NSManagedObjectContext { results.context }

  /// The key path of the sections' names.
  open var sectionNameKeyPath: String? { results.sectionNameKeyPath }

  /// The name under which section information is cached.
  open var cacheName: String? { results.cacheName }

  /// The delegate that is notified of changes; it is held weakly.
  open var delegate: (any NSFetchedResultsControllerDelegate)? {
    get { results.delegate }
    set { results.delegate = newValue }
  }

  /// Removes the cached section information of a name, or all of it.
  open class func deleteCache(withName name: String?) {
    FetchedResultsCache.delete(named: name)
  }

  // MARK: Results

  /// Runs the request and replaces the results.
  open func performFetch() throws {
    try results.performFetch()
  }

  /// The objects in order; nil before the first fetch.
  open var fetchedObjects: [ResultType]? {
    guard let list = results.list else { return nil }
    if typedVersion != results.version {
      typedObjects = list.objects.compactMap { $0 as? ResultType }
      typedVersion = results.version
    }
    return typedObjects
  }

  /// The object at an index path, which must be valid.
  open func object(at indexPath: IndexPath) -> ResultType {
    guard let list = results.list, list.sections.indices.contains(indexPath.section) else {
      preconditionFailure("no section at index \(indexPath.section)")
    }
    let range = list.sections[indexPath.section].range
    guard indexPath.item >= 0, indexPath.item < range.count,
      let object = list.objects[range.lowerBound + indexPath.item] as? ResultType
    else {
      preconditionFailure(
        "no object at index \(indexPath.item) in section at index \(indexPath.section)"
      )
    }
    return object
  }

  /// The index path of an object; nil if it is not in the list.
  open func indexPath(forObject object: ResultType) -> IndexPath? {
    (object as? NSManagedObject).flatMap { results.indexPath(of: $0) }
  }

  // MARK: Sections

  /// The sections in order; nil before the first fetch.
  open var sections: [any NSFetchedResultsSectionInfo]? {
    results.sections
  }

  /// The titles of the sections, without duplicates.
  open var sectionIndexTitles: [String] {
    var seen: Set<String> = []
    return (results.sections ?? []).compactMap(\.indexTitle)
      .filter { seen.insert($0).inserted }
  }

  /// The title of a section: the first letter of its name, in upper case; a subclass may override
  /// it.
  open func sectionIndexTitle(forSectionName sectionName: String) -> String? {
    sectionName.first.map { String($0).uppercased() }
  }

  /// The number of the first section with a title.
  open func section(forSectionIndexTitle title: String, at sectionIndex: Int) -> Int {
    let titles = sectionIndexTitles
    precondition(
      titles.indices.contains(sectionIndex) && titles[sectionIndex] == title,
      "Index title at \(sectionIndex) is not equal to '\(title)'"
    )
    return results.sections?.firstIndex { $0.indexTitle == title } ?? 0
  }

  // MARK: Identity

  open override func isEqual(_ object: Any?) -> Bool {
    (object as? any FetchedResultsShowing)?.results === results
  }

  open override var hash: Int { ObjectIdentifier(results).hashValue }
}

/// Lets controllers of different static types compare their lists.
private protocol FetchedResultsShowing {
  var results: FetchedResults { get }
}

extension NSFetchedResultsController: FetchedResultsShowing {}
