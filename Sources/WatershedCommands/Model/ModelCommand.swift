import ArgumentParser

/// `watershed model`: commands for Core Data models.
struct ModelCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "model",
    abstract: "Inspect Core Data models, and generate their classes.",
    subcommands: [ModelGenerateCommand.self, ModelRecordsCommand.self]
  )
}
