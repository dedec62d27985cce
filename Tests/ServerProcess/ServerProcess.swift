import CloudKitServer
import CloudKitWebServices
import Foundation

/// A server in its own process on a shared database, with clients that write as fast as they can;
/// it prints acknowledged writes.
///
/// `ServerProcess URL API-TOKEN WEB-TOKEN CONTAINER ZONE NAME CLIENTS BATCHES`
///
/// Each client creates, changes and deletes records of its own, and changes records that all
/// clients share. `saved NAME TAG` and `deleted NAME` are acknowledgements, in the order in which a
/// client received them.
@main
struct ServerProcess {
  static func main() async throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 9, let clients = Int(arguments[7]), let batches = Int(arguments[8])
    else {
      FileHandle.standardError.write(Data("wrong arguments\n".utf8))
      exit(64)
    }
    let service = try CloudKitService(ServiceConfiguration(database: arguments[1]))
    let path = WebServicePath(
      container: arguments[4],
      environment: .development,
      database: .private,
      endpoint: .modifyRecords
    ).text(items: [
      (name: WebServiceName.apiToken, value: arguments[2]),
      (name: WebServiceName.webAuthToken, value: arguments[3]),
    ])
    try await withThrowingTaskGroup(of: Void.self) { group in
      for client in 0..<clients {
        let name = "\(arguments[6])-\(client)"
        let writer = Writer(service: service, path: path, zone: arguments[5], name: name)
        group.addTask { for batch in 0..<batches { try await writer.write(batch) } }
      }
      try await group.waitForAll()
    }
    await service.shutdown()
    print("end")
  }
}

private struct Writer {
  let service: CloudKitService
  let path: String
  let zone: String
  let name: String

  func write(_ batch: Int) async throws {
    var operations = (0..<3).map { operation(.forceUpdate, "\(name)-\(batch)-\($0)", batch) }
    operations.append(operation(.forceUpdate, "shared-\(batch % 5)", batch))
    if batch > 0 {
      operations.append(operation(.forceUpdate, "\(name)-\(batch - 1)-0", batch))
      operations.append(operation(.forceDelete, "\(name)-\(batch - 1)-1", batch))
    }
    let request = ModifyRecordsRequest(
      operations: operations,
      zoneID: ZoneID(zoneName: zone),
      atomic: true
    )
    let body = try WireCoding.encode(request)
    while true {
      let response = await service.respond(
        to: WebServiceRequest(method: "POST", path: path, headers: [:], body: body)
      )
      // Busy or unreachable: unacknowledged requests are repeated.
      if response.status == 503 || response.status == 429 { continue }
      guard response.status == 200 else {
        throw Refusal(body: String(decoding: response.body, as: UTF8.self))
      }
      let reply = try WireCoding.decode(RecordsResponse.self, from: response.body)
      var lines = ""
      for result in reply.records {
        let record = try result.get()
        lines +=
          record.deleted == true
          ? "deleted \(record.recordName ?? "")\n"
          : "saved \(record.recordName ?? "") \(record.recordChangeTag ?? "")\n"
      }
      FileHandle.standardOutput.write(Data(lines.utf8))
      return
    }
  }

  struct Refusal: Error { var body: String }

  private func operation(
    _ type: RecordOperationType,
    _ name: String,
    _ number: Int
  ) -> RecordOperation {
    RecordOperation(
      operationType: type,
      record: RecordDictionary(
        recordName: name,
        recordType: "Note",
        fields: type == .forceDelete ? nil : ["n": FieldValue(.int64(Int64(number)))]
      )
    )
  }
}
