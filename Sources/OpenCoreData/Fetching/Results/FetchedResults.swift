import Foundation

/// The results of a fetched results controller, without their static type.
final class FetchedResults: @unchecked Sendable {
  // Sendable: confined to the queue of its context.

  let context: NSManagedObjectContext
  let sectionNameKeyPath: String?
  let cacheName: String?
  private let fetch: () throws -> [NSManagedObject]
  private let makePlan: () throws -> FetchPlan
  private var plan: FetchPlan?
  var list: SectionedResults? {
    didSet {
      version += 1
      knownSections = nil
    }
  }
  /// The sections of this list, if `sections` was read.
  private var knownSections: [FetchedResultsSectionInfo]?
  /// The version of the list; 0 before the first.
  private(set) var version = 0
  private var observers: [any NSObjectProtocol] = []
  /// The delegate; setting it resets what is known of its optional methods.
  weak var delegate: (any NSFetchedResultsControllerDelegate)? {
    didSet {
      wantsDifferences = sectionNameKeyPath == nil
      delegateNamesTitles = true
      knownSections = nil
    }
  }
  /// False once the delegate is found to have no method for differences.
  var wantsDifferences: Bool
  /// False once the delegate is found to have no method for titles.
  var delegateNamesTitles = true
  /// The controller that is passed to the delegate.
  var facade: () -> NSFetchedResultsController<any NSFetchRequestResult>?
  /// Called after the list changed or was fetched.
  var didChange: (() -> Void)?

  init<ResultType>(
    request: NSFetchRequest<ResultType>,
    context: NSManagedObjectContext,
    sectionNameKeyPath: String?,
    cacheName: String?
  ) {
    self.context = context
    self.sectionNameKeyPath = sectionNameKeyPath
    self.cacheName = cacheName
    makePlan = { [unowned context] in
      guard request.sortDescriptors != nil else { throw FetchedResults.missingSortDescriptors }
      return try FetchPlan(request, model: context.requireCoordinator().managedObjectModel)
    }
    fetch = { [unowned context] in
      try context.results(of: request).compactMap { $0 as? NSManagedObject }
    }
    wantsDifferences = sectionNameKeyPath == nil
    facade = { nil }
  }

  deinit {
    stop()
  }

  /// Stops observing changes.
  func stop() {
    let observers = observers
    self.observers = []
    for observer in observers { NotificationCenter.default.removeObserver(observer) }
  }

  // MARK: Fetching

  func performFetch() throws {
    let plan = try makePlan()
    let objects = try fetch()
    self.plan = plan
    list = try sectioned(objects, plan)
    observe()
    didChange?()
  }

  private static var missingSortDescriptors: any Error {
    CoreDataError.make(
      NSCoreDataError,
      "An instance of NSFetchedResultsController requires a fetch request with sort descriptors"
    )
  }

  private func sectioned(
    _ objects: [NSManagedObject],
    _ plan: FetchPlan
  ) throws -> SectionedResults {
    // A pinned context reads other rows than the newest commit's.
    guard let cacheName, let sectionNameKeyPath, !context.hasChanges, context.parent == nil,
      context.pinnedGeneration == nil, let coordinator = context.persistentStoreCoordinator
    else { return try SectionedResults(objects, sectionNameKeyPath: sectionNameKeyPath) }
    let configuration = FetchedResultsCache.Configuration(
      plan,
      sectionNameKeyPath: sectionNameKeyPath
    )
    let part = FetchedResultsCache.Part(plan)
    let known = FetchedResultsCache.sections(named: cacheName, configuration, part, coordinator)
    // Two predicates of blocks have the same text.
    if let known, SectionedResults.sections(known, fit: objects, by: sectionNameKeyPath) {
      return SectionedResults(objects, sections: known)
    }
    let made = try SectionedResults(objects, sectionNameKeyPath: sectionNameKeyPath)
    FetchedResultsCache.store(made.sections, named: cacheName, configuration, part, coordinator)
    return made
  }

  private func observe() {
    guard observers.isEmpty else { return }
    // Both are posted on the context's queue, to which the list is confined.
    observers = [
      NotificationCenter.default.addObserver(
        forName: .NSManagedObjectContextObjectsDidChange,
        object: context,
        queue: nil
      ) { [weak self] notification in
        self?.objectsDidChange(notification.userInfo ?? [:])
      },
      NotificationCenter.default.addObserver(
        forName: .contextDidMergeUnannouncedRows,
        object: context,
        queue: nil
      ) { [weak self] notification in
        if let rows = UnannouncedRows(notification) { self?.contextDidMerge(rows) }
      },
    ]
  }

  // MARK: Changing

  /// Without a delegate the list is not updated, and stays as it was fetched.
  private var isFollowed: Bool { delegate != nil || didChange != nil }

  private func objectsDidChange(_ userInfo: [AnyHashable: Any]) {
    guard isFollowed, let plan, list != nil else { return }
    do {
      if userInfo[NSInvalidatedAllObjectsKey] != nil { return try becomeInvalid() }
      try follow(FetchedResultsTracker.Turn(userInfo), plan)
    } catch {
      StoreLog.warning("(NSFetchedResultsController) could not follow a change: \(error)")
    }
  }

  /// Takes the objects of rows that match since another context changed them.
  ///
  /// Core Data leaves such an object out where its context has not read it before; apps read all
  /// changed objects before a merge to have them in their lists.
  private func contextDidMerge(_ rows: UnannouncedRows) {
    guard isFollowed, let plan, var old = list else { return }
    do {
      if plan.limit > 0 || plan.offset > 0 {
        let isAffected =
          rows.inserted.contains(where: plan.covers)
          || (rows.updated + rows.deleted).contains { context.template(of: $0, for: plan) != nil }
        if isAffected { try fetchAgain(&old, touched: []) }
        return
      }
      // Without a predicate the list has the objects of all rows since they were inserted.
      let found =
        try plan.predicate == nil ? [] : context.matchingObjects(of: rows.updated, for: plan)
      let known = rows.inserted + found
      if !known.isEmpty { try follow(FetchedResultsTracker.Turn(known: known), plan) }
    } catch {
      StoreLog.warning("(NSFetchedResultsController) could not follow a merge: \(error)")
    }
  }

  private func follow(_ turn: FetchedResultsTracker.Turn, _ plan: FetchPlan) throws {
    guard var old = list else { return }
    let tracker = FetchedResultsTracker(plan: plan)
    if plan.limit > 0 || plan.offset > 0 {
      let rekeyed = tracker.rekeyed(among: turn.changed)
      return try fetchAgain(&old, touched: turn.changed, rekeyed: rekeyed)
    }
    // Faults are compared and asked for their sections: their rows are read together.
    context.attachRows(to: turn.changed.filter { $0.isFault && plan.covers($0) })
    guard let outcome = tracker.list(&old, after: turn) else { return }
    // A section's name may be of a related object, which changed by itself, also one of the same entity.
    let asksRelated = sectionNameKeyPath?.utf8.contains(UInt8(ascii: ".")) ?? false
    let areNamesKnown = !asksRelated && turn.changed.allSatisfy(plan.covers)
    let renamed = outcome.touched.union(outcome.displaced)
    var new = try SectionedResults(
      outcome.objects,
      sectionNameKeyPath: sectionNameKeyPath
    ) { object in
      areNamesKnown && !renamed.contains(object) ? old.sectionName(of: object) : nil
    }
    report(&old, &new, touched: outcome.touched, displaced: outcome.displaced)
  }

  /// All objects were removed at once, as when the context was reset: as in Core Data, the delegate
  /// is not notified, and there is no list until the app fetches again.
  private func becomeInvalid() throws {
    plan = nil
    guard didChange != nil else { return }
    try performFetch()
  }

  /// A list with a limit or an offset is fetched again.
  private func fetchAgain(
    _ old: inout SectionedResults,
    touched: Set<NSManagedObject>,
    rekeyed: Set<NSManagedObject> = []
  ) throws {
    var new = try SectionedResults(fetch(), sectionNameKeyPath: sectionNameKeyPath)
    let difference = new.objects.difference(from: old.objects).inferringMoves()
    var displaced = rekeyed
    for case .insert(_, let object, _?) in difference { displaced.insert(object) }
    report(&old, &new, touched: touched, displaced: displaced)
  }

  private func report(
    _ old: inout SectionedResults,
    _ new: inout SectionedResults,
    touched: Set<NSManagedObject>,
    displaced: Set<NSManagedObject>
  ) {
    let changes = FetchedResultsChanges(
      from: &old,
      to: &new,
      touched: touched,
      displaced: displaced
    )
    guard !changes.isEmpty else { return }
    if let delegate, let controller = facade() {
      notify(delegate, controller, changes, old, new)
    } else {
      list = new
    }
    didChange?()
  }

  // MARK: Sections

  /// The sections of the list; the same instances until the list changes.
  var sections: [FetchedResultsSectionInfo]? {
    guard let list else { return nil }
    if let knownSections { return knownSections }
    let made = list.sections.map { section in
      FetchedResultsSectionInfo(
        name: section.name,
        indexTitle: indexTitle(section.name),
        members: list.objects[section.range]
      )
    }
    knownSections = made
    return made
  }

  func indexTitle(_ name: String) -> String? {
    guard sectionNameKeyPath != nil, let controller = facade() else { return nil }
    if delegateNamesTitles, let delegate {
      let title = delegate.controller(controller, sectionIndexTitleForSectionName: name)
      if delegateNamesTitles { return title }
    }
    return titleOfController(name)
  }

  /// Calls the app's own controller, which may be a subclass.
  var titleOfController: (String) -> String? = { _ in nil }

  func indexPath(of object: NSManagedObject) -> IndexPath? {
    // The list is not read through the property: looking an object up must not copy it.
    guard var list else { return nil }
    return list.indexPath(of: object)
  }
}
