import Foundation
import Synchronization

/// A cache of section information by the names that apps give it, which outlives the controllers.
///
/// An entry is valid until the next commit to the coordinator's stores.
enum FetchedResultsCache {
  /// Everything that section information depends on, except the stores' contents.
  struct Configuration: Equatable {
    var entity: String
    var predicate: String?
    var sortDescriptors: [String]
    var sectionNameKeyPath: String?

    init(_ plan: FetchPlan, sectionNameKeyPath: String?) {
      entity = plan.entity.name ?? ""
      predicate = plan.predicate?.formatString
      sortDescriptors = plan.sortDescriptors.map {
        "\($0.key ?? "") \($0.ascending) \($0.sortKey?.ordering.rawValue ?? "")"
      }
      self.sectionNameKeyPath = sectionNameKeyPath
    }
  }

  /// The part of the matching objects that a request fetches.
  ///
  /// An app may fetch several parts with one name: the last one is cached.
  struct Part: Equatable {
    var limit: Int
    var offset: Int
    var includesSubentities: Bool
    var stores: [ObjectIdentifier]?

    init(_ plan: FetchPlan) {
      limit = plan.limit
      offset = plan.offset
      includesSubentities = plan.includesSubentities
      stores = plan.stores?.map { ObjectIdentifier($0) }
    }
  }

  private struct Entry {
    var configuration: Configuration
    var part: Part
    weak var coordinator: NSPersistentStoreCoordinator?
    var commitCount: UInt32
    var sections: [SectionedResults.Section]
  }

  /// The most entries, more than an app has lists; the oldest entry is removed.
  private static let limit = 256

  private struct State {
    var entries: [String: Entry] = [:]
    var names: [String] = []
  }

  private static let state = Mutex(State())

  static func sections(
    named name: String,
    _ configuration: Configuration,
    _ part: Part,
    _ coordinator: NSPersistentStoreCoordinator
  ) -> [SectionedResults.Section]? {
    guard let entry = state.withLock({ $0.entries[name] }), entry.coordinator === coordinator else {
      return nil
    }
    guard entry.configuration == configuration else {
      fatalError(
        "FATAL ERROR: The persistent cache of section information does not match the current "
          + "configuration.  You have illegally mutated the NSFetchedResultsController's fetch "
          + "request, its predicate, or its sort descriptor without either disabling caching or "
          + "using +deleteCacheWithName:"
      )
    }
    let isCurrent = entry.part == part && entry.commitCount == coordinator.commitCount
    return isCurrent ? entry.sections : nil
  }

  static func store(
    _ sections: [SectionedResults.Section],
    named name: String,
    _ configuration: Configuration,
    _ part: Part,
    _ coordinator: NSPersistentStoreCoordinator
  ) {
    let entry = Entry(
      configuration: configuration,
      part: part,
      coordinator: coordinator,
      commitCount: coordinator.commitCount,
      sections: sections
    )
    state.withLock { state in
      if state.entries.updateValue(entry, forKey: name) == nil { state.names.append(name) }
      if state.names.count > limit { state.entries[state.names.removeFirst()] = nil }
    }
  }

  static func delete(named name: String?) {
    state.withLock { state in
      guard let name else {
        state = State()
        return
      }
      state.entries[name] = nil
      state.names.removeAll { $0 == name }
    }
  }
}
