import CloudKitWebServices
import Foundation

/// The log of apps' requests.
extension CloudKitService {
  /// The most bytes of one name in the log: paths and headers may have long ones.
  private static let loggedName = 255

  /// Adds a request to a documented endpoint to the log, and counts its refusals.
  func note(
    _ response: WebServiceResponse,
    to request: WebServiceRequest,
    _ route: Route,
    _ subject: RequestSubject,
    refusal: ServerErrorCode?,
    seconds: Double
  ) {
    let facts = subject.facts
    if let refusal { refusals.count(refusal) }
    refusals.count(items: facts.refused)
    guard case .api(let path, let endpoint) = route else { return }
    requestLog.append(
      LoggedRequest(
        number: 0,
        time: now,
        container: Self.shortened(path.container),
        environment: path.environment,
        database: path.database,
        endpoint: endpoint.rawValue,
        user: facts.user,
        device: facts.device.map(Self.shortened),
        platform: request.headers["user-agent"].map(Self.shortened),
        recordTypes: facts.recordTypes.map(Self.shortened),
        zones: facts.zones.map(Self.shortened),
        items: facts.items,
        milliseconds: (seconds * 100_000).rounded() / 100,
        bytesIn: request.body.count,
        bytesOut: response.body.count,
        status: response.status,
        outcome: refusal?.rawValue ?? LoggedRequest.success,
        refused: Dictionary(uniqueKeysWithValues: facts.refused.map { ($0.key.rawValue, $0.value) })
      ),
      account: facts.account
    )
  }

  private static func shortened(_ text: String) -> String {
    guard text.utf8.count > loggedName else { return text }
    var short = text.prefix(loggedName)
    while short.utf8.count > loggedName { short.removeLast() }
    return String(short)
  }

  /// Admin call `requests/list`.
  func listRequests(_ call: AdminCall) throws -> AdminReply {
    let query: RequestQuery = try call.read()
    if let endpoint = query.endpoint, Endpoint(rawValue: endpoint) == nil {
      throw AdministrationError(
        description: "There is no endpoint \(endpoint); an endpoint is such as records/modify."
      )
    }
    let (found, names) = try storage.read { snapshot in
      let account = try query.user.flatMap { try snapshot.account(userName: $0) }?.id
      let page = requestLog.page(query, account: account)
      var names: [String: String] = [:]
      for id in Set(page.lines.compactMap(\.account)) {
        names[id] = try snapshot.account(id: id)?.userName
      }
      return (page, names)
    }
    // Once an hour for a reader who follows the log.
    let reader = call.isOperator ? "" : call.by
    let isLogged = requestLog.isFirstRead(query, by: reader, at: now) || query.after == nil
    let trace =
      isLogged
      ? auditLog.record(
        "request.list",
        by: call,
        about: query.container ?? "",
        detail: query.user ?? ""
      )
      : .unaudited(.continues)
    return try call.reply(
      RequestPage(
        log: requestLog.name,
        requests: found.lines.map { line in
          var request = line.request
          request.userName = line.account.flatMap { names[$0] }
          return request
        },
        last: found.last
      ),
      trace
    )
  }
}
