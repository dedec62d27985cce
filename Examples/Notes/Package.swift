// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "notes",
  dependencies: [
    // In a package of your own: .package(url: "https://…/watershed", from: "…", traits: [])
    .package(name: "watershed", path: "../..", traits: [])
  ],
  targets: [
    .executableTarget(
      name: "NotesByHand",
      dependencies: [.product(name: "CloudKit", package: "watershed")]
    ),
    .executableTarget(
      name: "NotesByEngine",
      dependencies: [.product(name: "CloudKit", package: "watershed")]
    ),
  ]
)
