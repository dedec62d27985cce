// Code that says `import CloudKit` expects Foundation with it, as Apple's module brings it.
@_exported import Foundation
