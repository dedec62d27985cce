import CloudKitServer
import CloudKitServerHTTP
import CloudKitWebServices

/// A key of the configuration, declared once in a table: what the file may say of it, whether it is shown, and what it
/// sets.
///
/// A table has every property of its type, and each entry says whether it is shown: a secret cannot be left out.
struct ConfigurationKey<Root>: Sendable {
  let name: String
  let kind: ServerConfiguration.Kind
  /// The valid texts; nil for any.
  let words: [String]?
  /// Replaces what must not be printed.
  let hide: @Sendable (inout Root) -> Void
  /// Sets the service's configuration, or the HTTP server's; for a key that is applied elsewhere it does nothing.
  let apply: Application

  typealias Application =
    @Sendable (
      Root, inout ServiceConfiguration, inout CloudKitHTTPServer.Configuration
    ) -> Void

  /// What a key sets as it is.
  enum Target<Value> {
    case service(any WritableKeyPath<ServiceConfiguration, Value> & Sendable)
    case http(any WritableKeyPath<CloudKitHTTPServer.Configuration, Value> & Sendable)
    /// The code that reads the property.
    case elsewhere
  }

  typealias Path<Value> = any WritableKeyPath<Root, Value> & Sendable

  /// A key that `watershed config show` prints, without what `hiding` takes out of it.
  static func shown<Value: ConfigurationValue>(
    _ name: String,
    _ path: Path<Value>,
    sets target: Target<Value> = .elsewhere,
    hiding: (@Sendable (Value) -> Value)? = nil
  ) -> ConfigurationKey where Value: Sendable {
    let apply: Application
    switch target {
    case .service(let place):
      apply = { root, service, _ in service[keyPath: place] = root[keyPath: path] }
    case .http(let place):
      apply = { root, _, http in http[keyPath: place] = root[keyPath: path] }
    case .elsewhere: apply = { _, _, _ in }
    }
    return ConfigurationKey(
      name: name,
      kind: Value.kind,
      words: Value.words,
      hide: { root in
        if let hiding { root[keyPath: path] = hiding(root[keyPath: path]) }
      },
      apply: apply
    )
  }

  /// A key that is never printed.
  static func secret(_ name: String, _ path: Path<String>) -> ConfigurationKey {
    .shown(name, path) { _ in "…" }
  }

  static func secret(_ name: String, _ path: Path<String?>) -> ConfigurationKey {
    .shown(name, path) { $0 == nil ? nil : "…" }
  }

  /// The key without its type.
  var description: ServerConfiguration.Key {
    ServerConfiguration.Key(name: name, kind: kind, words: words)
  }
}

/// A type of values in the configuration.
protocol ConfigurationValue {
  static var kind: ServerConfiguration.Kind { get }
  static var words: [String]? { get }
}

extension ConfigurationValue {
  static var words: [String]? { nil }
}

extension ConfigurationValue where Self: CaseIterable & RawRepresentable<String> {
  static var kind: ServerConfiguration.Kind { .text }
  static var words: [String]? { allCases.map(\.rawValue) }
}

extension String: ConfigurationValue {
  static var kind: ServerConfiguration.Kind { .text }
}

extension Int: ConfigurationValue {
  static var kind: ServerConfiguration.Kind { .wholeNumber }
}

extension Int64: ConfigurationValue {
  static var kind: ServerConfiguration.Kind { .wholeNumber }
}

extension Double: ConfigurationValue {
  static var kind: ServerConfiguration.Kind { .number }
}

extension Bool: ConfigurationValue {
  static var kind: ServerConfiguration.Kind { .flag }
}

extension [String]: ConfigurationValue {
  static var kind: ServerConfiguration.Kind { .list }
}

extension Optional: ConfigurationValue where Wrapped: ConfigurationValue {
  static var kind: ServerConfiguration.Kind { Wrapped.kind }
  static var words: [String]? { Wrapped.words }
}

extension ContainerEnvironment: ConfigurationValue {}
extension BannerStyle: ConfigurationValue {}
extension DiscoveryPolicy: ConfigurationValue {}
extension RegistrationPolicy: ConfigurationValue {}
extension SMTPSettings.Security: ConfigurationValue {}

/// A section of the configuration: an object with keys of its own.
protocol ConfigurationSection: ConfigurationValue, Codable, Sendable {
  static var table: [ConfigurationKey<Self>] { get }
}

extension ConfigurationSection {
  static var kind: ServerConfiguration.Kind { .object }

  /// The section without its secrets.
  var redacted: Self {
    var shown = self
    for key in Self.table { key.hide(&shown) }
    return shown
  }
}
