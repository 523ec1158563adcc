pub trait Press { fn squeeze(&self) -> u32; }

pub struct Juice;

impl Press for Juice { fn squeeze(&self) -> u32 { 1 } }
