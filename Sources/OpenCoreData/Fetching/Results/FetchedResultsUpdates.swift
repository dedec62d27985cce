import Foundation

/// The results of a request now and after each change of its context, as an asynchronous sequence.
///
/// ```swift
/// for try await list in context.updates(of: request) {
///   await context.perform { show(list.objects(in: context)) }
/// }
/// ```
///
/// Created by ``NSManagedObjectContext/updates(of:sectionNameKeyPath:)``. A slow reader skips lists
/// and receives the newest one; each list has the difference from the last one that was read.
///
/// **Differs from Core Data:** there is no such sequence; it stands beside
/// ``NSFetchedResultsController``, with no delegate to write.
public struct FetchedResultsUpdates<ResultType: NSManagedObject>: AsyncSequence, Sendable {
  /// One list of results.
  public struct Element: Sendable {
    /// A range of objects with the same section name.
    public struct Section: Sendable, Hashable {
      /// The text of the section key path's value.
      public let name: String
      /// The indices of the section's objects in the list.
      public let range: Range<Int>
    }

    /// The objects' identifiers in order.
    public let objectIDs: [NSManagedObjectID]
    /// The sections in order; a single one without a key path.
    public let sections: [Section]
    /// The difference from the last list that was read, or from an empty one.
    ///
    /// It is empty if only values changed.
    public fileprivate(set) var difference: CollectionDifference<NSManagedObjectID>

    /// The objects in a context; call it on the context's queue.
    public func objects(in context: NSManagedObjectContext) -> [ResultType] {
      objectIDs.compactMap { context.object(with: $0) as? ResultType }
    }
  }

  /// Reads list after list.
  public struct AsyncIterator: AsyncIteratorProtocol {
    private var stream: AsyncThrowingStream<Element, any Error>.Iterator
    private var last: [NSManagedObjectID] = []

    fileprivate init(_ stream: AsyncThrowingStream<Element, any Error>) {
      self.stream = stream.makeAsyncIterator()
    }

    /// Waits for the next list; throws the error of the first fetch.
    public mutating func next() async throws -> Element? {
      guard var element = try await stream.next() else { return nil }
      element.difference = element.objectIDs.difference(from: last)
      last = element.objectIDs
      return element
    }
  }

  private let context: NSManagedObjectContext
  private let request: LaneTransfer<NSFetchRequest<ResultType>>
  private let sectionNameKeyPath: String?

  fileprivate init(
    _ context: NSManagedObjectContext,
    _ request: NSFetchRequest<ResultType>,
    _ sectionNameKeyPath: String?
  ) {
    self.context = context
    // A copy that the caller can't change.
    self.request = LaneTransfer(NSFetchRequest<ResultType>(sameAs: request))
    self.sectionNameKeyPath = sectionNameKeyPath
  }

  /// Starts observing the context.
  public func makeAsyncIterator() -> AsyncIterator {
    let context = context
    let request = request
    let sectionNameKeyPath = sectionNameKeyPath
    return AsyncIterator(
      AsyncThrowingStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
        let feed = LaneTransfer(
          Feed(context, request.value, sectionNameKeyPath, continuation)
        )
        // The stream retains the feed until its reader ends.
        continuation.onTermination = { _ in context.perform { feed.value.stop() } }
        context.perform { feed.value.start() }
      }
    )
  }

  /// Observes a list on the context's queue.
  private final class Feed: @unchecked Sendable {
    // Sendable: confined to the queue of its context.

    private let results: FetchedResults
    private let continuation: AsyncThrowingStream<Element, any Error>.Continuation
    private var saveObserver: (any NSObjectProtocol)?

    init(
      _ context: NSManagedObjectContext,
      _ request: NSFetchRequest<ResultType>,
      _ sectionNameKeyPath: String?,
      _ continuation: AsyncThrowingStream<Element, any Error>.Continuation
    ) {
      self.continuation = continuation
      results = FetchedResults(
        request: request,
        context: context,
        sectionNameKeyPath: sectionNameKeyPath,
        cacheName: nil
      )
    }

    func start() {
      results.didChange = { [weak self] in self?.yield() }
      // A save gives new objects their permanent identifiers.
      saveObserver = NotificationCenter.default.addObserver(
        forName: .NSManagedObjectContextDidSave,
        object: results.context,
        queue: nil
      ) { [weak self] notification in
        let inserted = notification.userInfo?[NSInsertedObjectsKey] as? Set<NSManagedObject>
        if inserted?.isEmpty == false { self?.yield() }
      }
      do {
        try results.performFetch()
      } catch {
        continuation.finish(throwing: error)
      }
    }

    func stop() {
      let observer = saveObserver
      saveObserver = nil
      if let observer { NotificationCenter.default.removeObserver(observer) }
      results.stop()
    }

    private func yield() {
      guard let list = results.list else { return }
      continuation.yield(
        Element(
          objectIDs: list.objects.map(\.objectID),
          sections: list.sections.map { .init(name: $0.name, range: $0.range) },
          difference: [NSManagedObjectID]().difference(from: [])
        )
      )
    }
  }
}

extension NSManagedObjectContext {
  /// The results of a request now and after each change of this context.
  ///
  /// The request is for managed objects and has sort descriptors, so that the order is defined. The
  /// section key path names the sections; with nil there is one section.
  public func updates<ResultType: NSManagedObject>(
    of request: NSFetchRequest<ResultType>,
    sectionNameKeyPath: String? = nil
  ) -> FetchedResultsUpdates<ResultType> {
    FetchedResultsUpdates(self, request, sectionNameKeyPath)
  }
}
