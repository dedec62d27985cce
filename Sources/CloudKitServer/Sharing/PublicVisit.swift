import CloudKitWebServices
import Foundation

/// Somebody who is not signed in, at a share that anybody may read: `records/resolve` gives them a
/// token, and with it they read the share in the shared database for a while.
///
/// The token says where to look. Whether the share is still open is read at its owner each time.
struct PublicVisit: Codable, Hashable, Sendable {
  /// The app's own token, which need not be sent with this one.
  var apiToken: String
  var container: String
  var environment: ContainerEnvironment
  var partition: Int64
  var owner: String
  var zone: Int64
  var zoneName: String
  var share: String
  /// Milliseconds since 1970.
  var expires: Int64

  /// Milliseconds that a token is good for; as long as Apple's.
  static let lifetime: Int64 = 20 * 60 * 1000

  /// Stands for everybody who visits the share: what one was told goes on for the next.
  var reader: String { "\(Self.prefix)\(partition)-\(zone)-\(share)" }

  /// Names of users are an underscore and digits.
  private static let prefix = "_visitor-"

  static func isReader(_ user: String) -> Bool { user.hasPrefix(prefix) }

  /// Where the share is, as a participant's own list would say.
  var link: StoredShareLink {
    StoredShareLink(
      container: container,
      environment: environment,
      user: reader,
      partition: PartitionID(rawValue: partition),
      owner: owner,
      zone: ZoneNumber(zone),
      zoneName: zoneName,
      share: share
    )
  }
}

extension CloudKitService {
  /// What `records/resolve` gives somebody who is not signed in; nil where the share is for named
  /// people.
  func publicAccess(
    to located: LocatedShare,
    _ context: RequestContext
  ) throws -> AnonymousPublicAccess? {
    guard context.principal == nil, located.state.publicPermission.canRead else { return nil }
    let visit = PublicVisit(
      apiToken: context.apiToken,
      container: context.container,
      environment: context.environment,
      partition: located.guid.partition.rawValue,
      owner: located.guid.owner,
      zone: located.row.number.rawValue,
      zoneName: located.row.name,
      share: located.share.key.name,
      expires: now + PublicVisit.lifetime
    )
    return AnonymousPublicAccess(
      token: try signer.seal(visit, for: .publicVisit),
      databasePartition: baseURL
    )
  }

  /// The visit that a request is part of; nil where it says nothing of one.
  func visit(_ target: RequestTarget, _ path: WebServicePath) throws -> PublicVisit? {
    guard path.database == .shared, let text = target.query[WebServiceName.publicAccessToken],
      !text.isEmpty
    else { return nil }
    guard let visit = signer.open(text, as: PublicVisit.self, for: .publicVisit),
      visit.container == path.container, visit.environment == path.environment,
      visit.expires > now
    else {
      throw ErrorDictionary(.authenticationFailed, "the public access token is not good any more")
    }
    return visit
  }
}
