//! The state of one part of the machine, as text: what a device hands over without anybody knowing its fields.

use crate::error::SocError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// A part's fields by name, in JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct State(Box<RawValue>);

impl State {
    /// The state of `part`. Error: [`SocError::Snapshot`], if a field has no form in JSON.
    pub fn of(part: &impl Serialize) -> Result<Self, SocError> {
        to_raw_value(part).map(Self).map_err(|error| SocError::Snapshot { reason: error.to_string() })
    }

    /// The text itself.
    pub(super) fn into_text(self) -> Box<str> {
        Box::<RawValue>::into(self.0)
    }

    /// The part. Error: [`SocError::Snapshot`], if it is another part's state, or another version's.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, SocError> {
        serde_json::from_str(self.0.get()).map_err(|error| foreign(&error))
    }
}

/// Fields that are not those of this build.
pub(super) fn foreign(error: &serde_json::Error) -> SocError {
    SocError::Snapshot {
        reason: format!("made by another build of soc ({error}): run to that point again with this one"),
    }
}

/// Arrays longer than the 32 elements that serde knows (`#[serde(with = "array")]`), of the length that the field has.
pub(crate) mod array {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<T: Serialize, S: Serializer, const N: usize>(array: &[T; N], out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq(array)
    }

    pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>, const N: usize>(
        from: D,
    ) -> Result<[T; N], D::Error> {
        let list = Vec::<T>::deserialize(from)?;
        let length = list.len();
        list.try_into().map_err(|_| D::Error::invalid_length(length, &"the elements of an array"))
    }

    /// The same in a box.
    pub mod boxed {
        use super::*;

        pub use super::serialize;

        pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>, const N: usize>(
            from: D,
        ) -> Result<Box<[T; N]>, D::Error> {
            super::deserialize(from).map(Box::new)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Part {
        wide: u128,
        #[serde(with = "array")]
        many: [u8; 40],
        #[serde(with = "array::boxed")]
        boxed: Box<[[u64; 2]; 33]>,
    }

    #[test]
    fn a_part_comes_back_and_another_is_refused() {
        let part = Part { wide: u128::MAX, many: [7; 40], boxed: Box::new([[u64::MAX, 1]; 33]) };
        let state = State::of(&part).unwrap();
        assert_eq!(state.read::<Part>().unwrap(), part);
        assert!(state.read::<u64>().is_err());
        let short = State::of(&serde_json::json!({ "wide": 1, "many": [1, 2], "boxed": [] })).unwrap();
        assert!(short.read::<Part>().is_err());
    }
}
