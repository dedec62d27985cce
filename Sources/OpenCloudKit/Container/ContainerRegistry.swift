import Effects
import Foundation
import Synchronization

/// The registry of a process's containers: the configurations given in code, and one client per
/// container, which all `CKContainer` values of the same identifier share.
final class ContainerRegistry: Sendable {
  static let shared = ContainerRegistry()

  private struct State {
    var general: CKContainerConfiguration?
    var perContainer: [String: CKContainerConfiguration] = [:]
    var clients: [String: ServiceClient] = [:]
  }

  private let state = Mutex(State())

  /// Stores a configuration and discards the clients created so far, so that the next request uses
  /// it.
  ///
  /// Returns whether it signs in another user than the previous one.
  func configure(_ configuration: CKContainerConfiguration, for identifier: String?) -> Bool {
    state.withLock { state in
      let previous: CKContainerConfiguration?
      if let identifier {
        previous = state.perContainer.updateValue(configuration, forKey: identifier)
        state.clients[identifier] = nil
      } else {
        previous = state.general
        state.general = configuration
        state.clients = [:]
      }
      return previous?.webAuthToken != configuration.webAuthToken
    }
  }

  /// The first container that the configuration names.
  func defaultIdentifier() -> String? {
    let code = state.withLock { $0.general }
    return try? ConfigurationLoader.process.load(code: code).containerIdentifiers?.first
  }

  /// The client of a container, created at its first use.
  func client(for identifier: String?) throws(CKError) -> ServiceClient {
    if let identifier, let client = state.withLock({ $0.clients[identifier] }) { return client }
    let code: CKContainerConfiguration? = state.withLock { state in
      guard let identifier, let own = state.perContainer[identifier] else { return state.general }
      return own.filled(from: state.general)
    }
    var loaded = try ConfigurationLoader.process.load(code: code)
    if let identifier, state.withLock({ $0.perContainer[identifier] != nil }),
      code?.containerIdentifiers == nil
    {
      // A configuration given for this container replaces the list of containers.
      loaded.containerIdentifiers = [identifier]
    }
    let configuration = try ResolvedConfiguration(checking: loaded, for: identifier)
    let client = ServiceClient(
      configuration: configuration,
      transport: HTTPTransport(baseURL: configuration.url),
      effects: .live,
      clientIdentifier: Effects.live.uuid().uuidString
    )
    return state.withLock { state in
      if let existing = state.clients[configuration.containerIdentifier] { return existing }
      state.clients[configuration.containerIdentifier] = client
      return client
    }
  }
}
