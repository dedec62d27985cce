import ArgumentParser

/// `watershed model`: commands for Core Data models.
struct ModelCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "model",
    abstract: "Look into Core Data models, and write their classes.",
    subcommands: [ModelGenerateCommand.self, ModelRecordsCommand.self]
  )
}
