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
    do {
      let chosen = try DemoModel.load(path: path)
      let violations = CloudKitModelRules.violations(
        of: chosen.model,
        configuration: configuration
      )
      guard violations.isEmpty else {
        throw DemoFailure(violations.map(\.text).joined(separator: "\n"), exitCode: 2)
      }
      let schema = cloudKitSchema(for: chosen.model, configuration: configuration)
      try StandardOutput.write(schema.ckdb)
    } catch let failure as DemoFailure {
      StandardError.print(failure.description)
      throw ExitCode(failure.exitCode)
    }
  }
}
