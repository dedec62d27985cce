import NIOCore

/// A request's body, streamed from the connection to its reader a few pieces at a time.
struct UploadStream: Sendable {
  typealias Producer = NIOThrowingAsyncSequenceProducer<
    ByteBuffer, any Error, NIOAsyncSequenceProducerBackPressureStrategies.HighLowWatermark, Demand
  >
  typealias Source = Producer.Source

  /// Makes the connection resume reading.
  struct Demand: NIOAsyncSequenceProducerDelegate {
    let readOn: @Sendable () -> Void

    func produceMore() { readOn() }

    /// The reader has ended: further input is discarded.
    func didTerminate() { readOn() }
  }

  let pieces: Producer

  static func make(readOn: @escaping @Sendable () -> Void) -> (stream: UploadStream, Source) {
    let made = Producer.makeSequence(
      elementType: ByteBuffer.self,
      failureType: (any Error).self,
      backPressureStrategy: .init(lowWatermark: 2, highWatermark: 8),
      finishOnDeinit: true,
      delegate: Demand(readOn: readOn)
    )
    return (UploadStream(pieces: made.sequence), made.source)
  }
}
