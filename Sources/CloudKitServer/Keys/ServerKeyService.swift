import CloudKitWebServices
import Crypto
import Effects
import Foundation

/// A key as an administrator sees it.
package struct ServerKeyDescription: Codable, Hashable, Sendable {
  package var keyID: String
  package var name: String
  package var container: String
  package var environment: ContainerEnvironment
  package var userRecordName: String
  /// Milliseconds since 1970.
  package var created: Int64
}

/// Server-to-server keys: adding them, and verifying their requests.
package final class ServerKeyService: Sendable {
  private let storage: any Storage
  private let writer: StorageWriter
  private let users: UserService
  private let failures: RequestFailures
  private let limits: ServiceLimits
  private let effects: Effects
  private let signatures = SignatureLedger()

  init(
    storage: any Storage,
    writer: StorageWriter,
    users: UserService,
    failures: RequestFailures,
    limits: ServiceLimits,
    effects: Effects
  ) {
    self.storage = storage
    self.writer = writer
    self.users = users
    self.failures = failures
    self.limits = limits
    self.effects = effects
  }

  /// Milliseconds since 1970.
  private var now: Int64 { effects.now.wireMilliseconds }

  /// Registers a public key, `publicKey` in PEM, whose private key can then sign requests.
  package func add(
    publicKey: String,
    name: String,
    container: String,
    environment: ContainerEnvironment,
    keyID: String? = nil
  ) async throws -> ServerKeyDescription {
    guard let parsed = ServerKey.readPEM(publicKey) else {
      throw AdministrationError(
        description: "The key is not a public key on the curve P-256 in PEM."
      )
    }
    guard NameRules.isContainerName(container, limits) else {
      throw AdministrationError(description: "Give the container that the key is for.")
    }
    if let keyID, keyID.isEmpty || keyID.count > limits.nameLength {
      throw AdministrationError(
        description: "A key ID has 1 to \(limits.nameLength) characters."
      )
    }
    let id = keyID ?? effects.randomness.bytes(32).hexadecimal
    let account = ServerKey.account(of: id)
    let user = try await users.user(account: account, container: container)
    let key = ServerKey(
      id: id,
      name: name,
      container: container,
      environment: environment,
      publicKey: parsed.pemRepresentation,
      userRecordName: user.recordName,
      created: now
    )
    let body = try WireCoding.encode(key)
    return try await writer.write { [storage] in
      guard try storage.read({ try $0.entry(ServerKey.key(id)) }) == nil else {
        throw AdministrationError(description: "There is a key with the ID \(id) already.")
      }
      var batch = WriteBatch()
      batch.container = container
      batch.expectedEntries[ServerKey.key(id)] = .some(nil)
      batch.savedEntries = [
        DirectoryEntry(
          ServerKey.key(id),
          owner: ServerKey.owner(in: container, environment),
          body: body
        )
      ]
      return (batch, key.description)
    }
  }

  package func all() throws -> [ServerKeyDescription] {
    try storage.read { try $0.entries(DirectoryRange(.serverKey)) }.map {
      try WireCoding.decode(ServerKey.self, from: $0.body).description
    }
  }

  /// Removes a key; its requests are refused from now on.
  package func remove(_ id: String) async throws {
    try await writer.write { [storage] in
      guard try storage.read({ try $0.entry(ServerKey.key(id)) }) != nil else {
        throw AdministrationError(description: "There is no key with the ID \(id).")
      }
      var batch = WriteBatch()
      batch.removedEntries = [ServerKey.key(id)]
      return (batch, ())
    }
  }

  // MARK: Requests

  /// The key that a signature names; its date is close to the server's.
  func key(of signature: KeySignature) throws -> ServerKey {
    let entry = try storage.read { try $0.entry(ServerKey.key(signature.keyID)) }
    guard let entry else { throw ErrorDictionary(.authenticationFailed, "unknown key") }
    let age = effects.now.timeIntervalSince(signature.date)
    guard abs(age) <= limits.signatureWindow else {
      throw ErrorDictionary(
        .authenticationFailed,
        "the request's date is more than \(Int(limits.signatureWindow)) seconds from the server's"
      )
    }
    return try WireCoding.decode(ServerKey.self, from: entry.body)
  }

  /// Checks who signed the request and whether the endpoint is open to keys.
  func authenticate(
    _ request: WebServiceRequest,
    _ target: RequestTarget,
    _ path: WebServicePath,
    signedBy signature: KeySignature
  ) throws -> RequestContext {
    let key = try key(of: signature)
    guard let publicKey = ServerKey.readPEM(key.publicKey),
      signature.isValid(request, by: publicKey)
    else { throw ErrorDictionary(.authenticationFailed, "the signature is not valid") }
    guard key.container == path.container, key.environment == path.environment else {
      throw ErrorDictionary(
        .authenticationFailed,
        "the key is not for this container's \(path.environment.rawValue) environment"
      )
    }
    guard path.database == nil || path.database == .public else {
      throw ErrorDictionary(
        .authenticationFailed,
        "a server-to-server key reaches the public database only"
      )
    }
    guard path.endpoint?.isOpenToKeys == true else {
      throw ErrorDictionary(
        .authenticationFailed,
        "users are looked up by a signed-in user, not by a server-to-server key"
      )
    }
    return RequestContext(
      container: path.container,
      environment: path.environment,
      scope: .public,
      caller: .serverKey(
        Principal(account: ServerKey.account(of: key.id), userRecordName: key.userRecordName),
        SignatureMark(
          name: signature.name,
          expires: (signature.date + limits.signatureWindow).wireMilliseconds
        )
      ),
      isExtended: request.headers[WebServiceName.capabilities] == WebServiceName.capabilitiesValue,
      wantsExactDates: request.headers[WebServiceName.capabilities]
        == WebServiceName.exactDatesValue,
      clientID: target.query["clientId"].flatMap(limits.deviceName),
      wantsSyncToken: false
    )
  }

  /// Answers a signed request once; a repeated one gets the same reply.
  func answerOnce(
    _ mark: SignatureMark,
    _ answer: () async throws -> WebServiceResponse
  ) async throws -> WebServiceResponse {
    switch signatures.claim(mark.name, now: now, expires: mark.expires) {
    case .first: break
    case .repeated(let reply): return reply
    case .used: throw ErrorDictionary(.authenticationFailed, "this signature was used before")
    case .running, .full:
      throw ErrorDictionary(.tryAgainLater, "this signature is in use", retryAfter: 1)
    }
    do {
      let reply = try await answer()
      signatures.settle(mark.name, reply)
      return reply
    } catch {
      let reply = failures.reply(error, uuid: effects.uuid().uuidString.lowercased())
      if reply.status >= 500 || reply.status == 429 {
        signatures.release(mark.name)
      } else {
        signatures.settle(mark.name, reply)
      }
      throw error
    }
  }
}

/// Identifies a request's signature.
struct SignatureMark: Hashable, Sendable {
  var name: String
  /// Milliseconds since 1970; afterwards the request is refused because of its date.
  var expires: Int64

  var key: DirectoryEntry.Key { DirectoryEntry.Key(.signature, name) }
}

extension ServerKey {
  fileprivate var description: ServerKeyDescription {
    ServerKeyDescription(
      keyID: id,
      name: name,
      container: container,
      environment: environment,
      userRecordName: userRecordName,
      created: created
    )
  }
}

extension Endpoint {
  /// Whether keys may call the endpoint: only users may look up users.
  var isOpenToKeys: Bool {
    switch self {
    case .discoverUsers, .lookupUsersByEmail, .lookupUsersByID, .lookupContacts: false
    default: true
    }
  }
}
