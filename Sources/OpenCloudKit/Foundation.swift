// Code that imports CloudKit expects Foundation too, as Apple's module re-exports it.
@_exported import Foundation
