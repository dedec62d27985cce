import CloudKitWebServices
import Testing

@testable import CloudKitServer

/// Which requests an API token admits.
@Suite("Admission by an API token")
struct APITokenAdmissionTests {
  private static let server = "https://sync.example.org"
  private static let listed = "https://app.example.com"
  private static let foreign = "https://elsewhere.example.net"
  private static let local = "http://localhost:5173"

  private func token(
    _ scope: APITokenScope,
    _ environment: ContainerEnvironment = .development,
    origins: [String] = []
  ) -> StoredAPIToken {
    StoredAPIToken(
      digest: "digest",
      prefix: "prefix",
      scope: scope,
      environment: environment,
      allowedOrigins: origins
    )
  }

  private func refusal(
    of token: StoredAPIToken,
    _ container: APITokenAdmission.Container = .requested("one"),
    _ environment: APITokenAdmission.Environment = .both,
    _ origin: APITokenAdmission.Origin = .ofProgram
  ) -> APITokenRefusal? {
    let admission = APITokenAdmission(
      container: container,
      environment: environment,
      origin: origin
    )
    do throws(APITokenRefusal) {
      try admission.check(token)
      #expect(admission.admits(token))
      return nil
    } catch {
      #expect(!admission.admits(token))
      return error
    }
  }

  @Test("A token of one container admits requests for that container alone")
  func containers() {
    #expect(refusal(of: token(.container("one"))) == nil)
    #expect(refusal(of: token(.everyContainer)) == nil)
    #expect(refusal(of: token(.container("two"))) == .container)
    #expect(refusal(of: token(.container("One"))) == .container)
    #expect(refusal(of: token(.container("two")), .ofUserToken) == nil)
  }

  @Test("A token for every container covers each scope, and no other token covers every container")
  func scopes() {
    #expect(APITokenScope.everyContainer.covers(.everyContainer))
    #expect(APITokenScope.everyContainer.covers(.container("one")))
    #expect(APITokenScope.container("one").covers(.container("one")))
    #expect(!APITokenScope.container("one").covers(.container("two")))
    #expect(!APITokenScope.container("one").covers(.everyContainer))
  }

  @Test("A scope is stored as the container's name, or null for every container")
  func columns() {
    for scope in [APITokenScope.everyContainer, .container("one"), .container("")] {
      #expect(APITokenScope(column: scope.column) == scope)
    }
    #expect(APITokenScope.everyContainer.column == nil)
  }

  @Test(
    "A data request is of the token's environment; a sign-in is of both",
    arguments: [ContainerEnvironment.development, .production],
    [ContainerEnvironment.development, .production]
  )
  func environments(_ own: ContainerEnvironment, _ requested: ContainerEnvironment) {
    for scope in [APITokenScope.everyContainer, .container("one")] {
      #expect(
        refusal(of: token(scope, own), .requested("one"), .requested(requested))
          == (own == requested ? nil : .environment)
      )
      #expect(refusal(of: token(scope, own), .requested("one"), .both) == nil)
    }
  }

  /// A page's origin, and whether each kind of request from it is admitted by a token without
  /// origins, in development and in production, and by one that lists `listed`.
  private struct Page: Sendable {
    var origin: String?
    var restricted: (free: Bool, listing: Bool)
    var trusted: (development: Bool, production: Bool, listing: Bool)
  }

  private static let pages = [
    Page(origin: nil, restricted: (true, true), trusted: (true, true, true)),
    Page(origin: listed, restricted: (true, true), trusted: (false, false, true)),
    Page(origin: foreign, restricted: (true, false), trusted: (false, false, false)),
    Page(origin: server, restricted: (true, false), trusted: (true, true, false)),
    Page(origin: local, restricted: (true, false), trusted: (true, false, false)),
    Page(origin: "null", restricted: (true, false), trusted: (false, false, false)),
    Page(origin: "", restricted: (true, false), trusted: (false, false, false)),
  ]

  @Test("Pages of other origins are refused as the request and the token's list say")
  func origins() {
    for page in Self.pages {
      for scope in [APITokenScope.everyContainer, .container("one")] {
        func isAdmitted(
          _ environment: ContainerEnvironment,
          _ origins: [String],
          _ rule: APITokenAdmission.Origin
        ) -> Bool {
          let token = token(scope, environment, origins: origins)
          switch refusal(of: token, .requested("one"), .requested(environment), rule) {
          case nil: return true
          case .origin(page.origin): return false
          case let other:
            Issue.record("\(String(describing: other)) for \(String(describing: page.origin))")
            return false
          }
        }
        for environment in [ContainerEnvironment.development, .production] {
          let restricted = APITokenAdmission.Origin.restricted(page.origin)
          #expect(isAdmitted(environment, [], restricted) == page.restricted.free)
          #expect(isAdmitted(environment, [Self.listed], restricted) == page.restricted.listing)
          #expect(isAdmitted(environment, [Self.listed], .ofHandover))
          #expect(isAdmitted(environment, [Self.listed], .ofProgram))
        }
        let trusted = APITokenAdmission.Origin.trusted(page.origin, server: Self.server)
        #expect(isAdmitted(.development, [], trusted) == page.trusted.development)
        #expect(isAdmitted(.production, [], trusted) == page.trusted.production)
        #expect(isAdmitted(.production, [Self.listed], trusted) == page.trusted.listing)
        #expect(isAdmitted(.development, [Self.listed], trusted) == page.trusted.listing)
      }
    }
  }

  @Test("The container is refused before the environment, and both before the origin")
  func order() {
    let other = token(.container("two"), .production, origins: [Self.listed])
    let page = APITokenAdmission.Origin.restricted(Self.foreign)
    #expect(refusal(of: other, .requested("one"), .requested(.development), page) == .container)
    #expect(refusal(of: other, .requested("two"), .requested(.development), page) == .environment)
    #expect(
      refusal(of: other, .requested("two"), .requested(.production), page) == .origin(Self.foreign)
    )
  }
}
