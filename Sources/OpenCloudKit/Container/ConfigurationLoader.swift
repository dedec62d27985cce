import Foundation

/// Loads a process's configuration; code takes precedence over environment, environment over file.
package struct ConfigurationLoader: Sendable {
  /// The environment variables of the process.
  package var environment: [String: String]
  /// The folders that are searched for a `CloudKit.json`, in order.
  package var folders: [String]
  /// Reads a file; nil if it does not exist.
  package var read: @Sendable (String) throws -> Data?

  package init(
    environment: [String: String],
    folders: [String],
    read: @escaping @Sendable (String) throws -> Data?
  ) {
    self.environment = environment
    self.folders = folders
    self.read = read
  }

  /// The name of the file.
  package static let fileName = "CloudKit.json"

  /// The names of the environment variables.
  package enum Variable {
    package static let file = "WATERSHED_CLOUDKIT_CONFIGURATION"
    package static let url = "WATERSHED_CLOUDKIT_URL"
    package static let apiToken = "WATERSHED_CLOUDKIT_API_TOKEN"
    package static let webAuthToken = "WATERSHED_CLOUDKIT_WEB_AUTH_TOKEN"
    package static let webAuthTokenFile = "WATERSHED_CLOUDKIT_WEB_AUTH_TOKEN_FILE"
    package static let serverKeyID = "WATERSHED_CLOUDKIT_SERVER_KEY_ID"
    package static let serverKeyFile = "WATERSHED_CLOUDKIT_SERVER_KEY_FILE"
    package static let environment = "WATERSHED_CLOUDKIT_ENVIRONMENT"
    package static let container = "WATERSHED_CLOUDKIT_CONTAINER"
  }

  /// The loader of this process.
  ///
  /// It searches the working folder, the executable's folder and the main bundle.
  package static var process: ConfigurationLoader {
    var folders = [FileManager.default.currentDirectoryPath]
    if let executable = Bundle.main.executableURL {
      folders.append(executable.deletingLastPathComponent().path)
    }
    if let resources = Bundle.main.resourceURL { folders.append(resources.path) }
    return ConfigurationLoader(
      environment: ProcessInfo.processInfo.environment,
      folders: folders,
      read: { path in
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        return try Data(contentsOf: URL(fileURLWithPath: path))
      }
    )
  }

  /// The merged values of code, environment and file.
  package func load(code: CKContainerConfiguration?) throws(CKError) -> CKContainerConfiguration {
    let fromEnvironment = try environmentConfiguration()
    let fromFile = try fileConfiguration()
    return (code ?? CKContainerConfiguration()).filled(from: fromEnvironment).filled(from: fromFile)
  }

  private func environmentConfiguration() throws(CKError) -> CKContainerConfiguration {
    var configuration = CKContainerConfiguration(
      apiToken: value(Variable.apiToken),
      webAuthToken: value(Variable.webAuthToken),
      webAuthTokenFile: value(Variable.webAuthTokenFile).map { URL(fileURLWithPath: $0) },
      serverKeyID: value(Variable.serverKeyID),
      serverKeyFile: value(Variable.serverKeyFile).map { URL(fileURLWithPath: $0) }
    )
    if let text = value(Variable.url) {
      guard let url = URL(string: text) else {
        throw CKError(.badContainer, "\(Variable.url) is no URL: \"\(text)\".")
      }
      configuration.url = url
    }
    if let names = value(Variable.container) {
      configuration.containerIdentifiers = names.split(separator: ",").map {
        $0.trimmingCharacters(in: .whitespaces)
      }
    }
    if let text = value(Variable.environment) {
      guard let side = CKContainerConfiguration.Environment(rawValue: text) else {
        throw CKError(
          .badContainer,
          "\(Variable.environment) is \"\(text)\".",
          remedy: "Set it to development or production."
        )
      }
      configuration.environment = side
    }
    return configuration
  }

  private func value(_ name: String) -> String? {
    environment[name].flatMap { $0.isEmpty ? nil : $0 }
  }

  private func fileConfiguration() throws(CKError) -> CKContainerConfiguration? {
    if let path = value(Variable.file) {
      guard let configuration = try configuration(at: path) else {
        throw CKError(
          .badContainer,
          "The file \(path) that \(Variable.file) names does not exist."
        )
      }
      return configuration
    }
    for folder in folders {
      if let configuration = try configuration(at: folder + "/" + Self.fileName) {
        return configuration
      }
    }
    return nil
  }

  private func configuration(at path: String) throws(CKError) -> CKContainerConfiguration? {
    do {
      guard let data = try read(path) else { return nil }
      return try JSONDecoder().decode(CKContainerConfiguration.self, from: data)
    } catch {
      throw CKError(
        .badContainer,
        "The CloudKit configuration \(path) can't be read: \(error)",
        remedy: """
          It is a JSON object with "url", "containers", "apiToken" and, where they are needed, \
          "webAuthToken", "environment" and "push".
          """,
        underlying: error
      )
    }
  }
}
