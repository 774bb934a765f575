//! The NIC as any other: [`NicDriver`].

use super::{AxiNic, Counters, Error, Event, Link, RxFrame, TxRefused};
use crate::dma::DmaBuffer;
use crate::mmio::Registers;
use crate::nic::NicDriver;

impl<R: Registers> NicDriver for AxiNic<R> {
    type Error = Error;

    fn rx_provide(&mut self, buffer: DmaBuffer) -> Result<(), DmaBuffer> {
        self.rx_provide(buffer)
    }
    fn rx_publish(&mut self) {
        self.rx_publish();
    }
    fn rx_return(&mut self) -> Option<RxFrame> {
        self.rx_return()
    }
    fn tx_provide(&mut self, buffer: DmaBuffer, length: usize) -> Result<(), TxRefused> {
        self.tx_provide(buffer, length)
    }
    fn tx_publish(&mut self) {
        self.tx_publish();
    }
    fn tx_return(&mut self) -> Option<DmaBuffer> {
        self.tx_return()
    }
    fn tx_notify(&mut self, on: bool) {
        self.tx_notify(on);
    }

    fn acknowledge(&mut self) -> Event {
        match (self.rx_event(), self.tx_event()) {
            (Event::Error, _) | (_, Event::Error) => Event::Error,
            (Event::None, Event::None) => Event::None,
            _ => Event::Packets,
        }
    }
    fn recover(&mut self) -> Result<(), Error> {
        self.recover()?;
        // A MAC at another speed than its link moves nothing.
        self.link().map(drop)
    }
    fn link(&mut self) -> Result<Link, Error> {
        self.link()
    }
    fn counters(&self) -> Counters {
        self.counters()
    }
}
