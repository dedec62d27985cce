import CloudKitWebServices
import Foundation

/// The visit of a caller without a user to a public share: `records/resolve` returns a token, with
/// which the share can be read in the shared database for a while.
///
/// The token only locates the share. Whether the share is still public is read in the owner's
/// database each time.
struct PublicVisit: Codable, Hashable, Sendable {
  /// The app's own token, which need not be sent besides this one.
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

  /// Milliseconds for which a token is valid; as Apple's.
  static let lifetime: Int64 = 20 * 60 * 1000

  var reader: ReaderID { .visitor(ofShare: "\(partition)-\(zone)-\(share)") }

  /// The share's location, as in a participant's own list.
  var link: StoredShareLink {
    StoredShareLink(
      container: container,
      environment: environment,
      user: reader.encoded,
      partition: PartitionID(rawValue: partition),
      owner: owner,
      zone: ZoneNumber(zone),
      zoneName: zoneName,
      share: share
    )
  }
}

extension SharingService {
  /// The token that `records/resolve` returns to a caller without a user; nil if the share is not
  /// public.
  func publicAccess(
    to located: LocatedShare,
    _ context: RequestContext
  ) throws -> AnonymousPublicAccess? {
    guard context.principal == nil, let apiToken = context.caller.apiToken,
      located.state.publicPermission.canRead
    else { return nil }
    let visit = PublicVisit(
      apiToken: apiToken,
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
      databasePartition: address.url
    )
  }

  /// The visit of a request; nil if it has no such token.
  func visit(_ target: RequestTarget, _ path: WebServicePath) throws -> PublicVisit? {
    guard path.database == .shared, let text = target.query[WebServiceName.publicAccessToken],
      !text.isEmpty
    else { return nil }
    guard let visit = signer.open(text, as: PublicVisit.self, for: .publicVisit),
      visit.container == path.container, visit.environment == path.environment,
      visit.expires > now
    else {
      throw ErrorDictionary(
        .authenticationFailed,
        "the public access token has expired or was revoked"
      )
    }
    return visit
  }
}
