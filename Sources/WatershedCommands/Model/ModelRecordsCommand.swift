import ArgumentParser
import CloudKitMirroring
import CloudKitWebServices
import Effects
import Foundation
import OpenCoreData

/// `watershed model records`: prints a model's CloudKit schema.
struct ModelRecordsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "records",
    abstract: "Print the CloudKit schema of a model, as .ckdb.",
    discussion: "Exits with 2 and lists the reasons if CloudKit does not support the model."
  )

  @Argument(help: "An .xcdatamodeld, an .xcdatamodel or a compiled model.")
  var path: String

  @Option(help: "Only the entities of this configuration.")
  var configuration: String?

  func run() async throws {
    let model: NSManagedObjectModel
    do {
      model = try DemoModel.load(path: path).model
    } catch {
      let failure = CommandFailure(unreadableModel: error)
      StandardError.write(failure.text)
      throw ExitCode(failure.exitCode)
    }
    let violations = CloudKitModelRules.violations(of: model, configuration: configuration)
    guard violations.isEmpty else {
      StandardError.print(violations.map(\.text).joined(separator: "\n"))
      throw ExitCode(ExitCodes.found)
    }
    try StandardOutput.write(cloudKitSchema(for: model, configuration: configuration).ckdb)
  }
}
