//! What is under way in a library, by tokens that it gives back.

/// Entries by tokens. The token of one that is gone finds no later one for a long time: 16 bits
/// count the lives of its place.
#[derive(Debug)]
pub struct Flights<T> {
    places: Vec<Option<T>>,
    lives: Vec<u16>,
    free: Vec<u16>,
}

impl<T> Flights<T> {
    /// With room for so many before it allocates.
    #[must_use]
    pub fn new(room: usize) -> Self {
        Self { places: Vec::with_capacity(room), lives: Vec::with_capacity(room), free: Vec::with_capacity(room) }
    }

    /// Whether nothing is under way.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }

    /// Whether there is a token for another one.
    #[must_use]
    pub fn has_room(&self) -> bool {
        !self.free.is_empty() || self.places.len() < usize::from(u16::MAX)
    }

    /// The token that [`Flights::enter`] gives next.
    #[inline]
    #[must_use]
    pub fn next(&self) -> u32 {
        let index = self.free.last().map_or(self.places.len(), |index| usize::from(*index));
        self.lives.get(index).map_or(index as u32, |_| self.token(index))
    }

    /// Enters what has room, and returns its token.
    pub fn enter(&mut self, flight: T) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.lives.push(0);
            (self.places.len() - 1) as u16
        });
        self.places[usize::from(index)] = Some(flight);
        self.token(usize::from(index))
    }

    fn token(&self, index: usize) -> u32 {
        u32::from(self.lives[index]) << 16 | index as u32
    }

    #[inline]
    fn index(&self, token: u32) -> Option<usize> {
        let index = (token & 0xffff) as usize;
        (*self.lives.get(index)? == (token >> 16) as u16).then_some(index)
    }

    /// What has this token.
    #[inline]
    pub fn get_mut(&mut self, token: u32) -> Option<&mut T> {
        let index = self.index(token)?;
        self.places[index].as_mut()
    }

    /// Takes out what has this token.
    #[inline]
    pub fn leave(&mut self, token: u32) -> Option<T> {
        let index = self.index(token)?;
        let flight = self.places[index].take()?;
        self.lives[index] = self.lives[index].wrapping_add(1);
        self.free.push(index as u16);
        Some(flight)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten()
    }

    /// The tokens of those that are meant.
    pub fn tokens(&self, is_meant: impl Fn(&T) -> bool) -> Vec<u32> {
        let all = self.places.iter().enumerate();
        all.filter(|(_, place)| place.as_ref().is_some_and(&is_meant)).map(|(index, _)| self.token(index)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_finds_its_own_entry_alone() {
        let mut flights = Flights::new(4);
        let next = flights.next();
        let first = flights.enter('a');
        assert_eq!((next, flights.get_mut(first)), (first, Some(&mut 'a')));
        assert_eq!((flights.leave(first), flights.leave(first)), (Some('a'), None));
        let next = flights.next();
        let second = flights.enter('b');
        assert_eq!(next, second);
        assert_eq!(second & 0xffff, first & 0xffff, "the same place");
        assert_eq!(flights.get_mut(first), None);
        assert_eq!(flights.tokens(|_| true), [second]);
    }
}
