//! A list that is longer than a page.

use crate::{Client, Error};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The most that any list of a server has on a page; those with shorter pages give less.
const PAGE_LEN_MAX: usize = 5_000;

/// The items of a list, fetched as they are read. It ends with the first error.
pub struct Pages<'a, T> {
    client: &'a Client,
    path: String,
    query: Vec<(String, String)>,
    /// How many are still wanted, and how many of them at a time.
    left: usize,
    page_size: usize,
    page: std::vec::IntoIter<T>,
    /// Where the next page begins; empty for the first, nothing after the last.
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct PageBody<T> {
    items: Vec<T>,
    next_cursor: Option<String>,
}

impl<'a, T: DeserializeOwned> Pages<'a, T> {
    pub(crate) fn new(client: &'a Client, path: &str, query: &[(&str, &str)], limit: usize) -> Self {
        Self {
            client,
            path: path.to_owned(),
            query: query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            left: limit,
            page_size: PAGE_LEN_MAX,
            page: Vec::new().into_iter(),
            cursor: Some(String::new()),
        }
    }

    /// Fetches no more than so many at a time, which is at least one; as many as the server gives unless told.
    pub fn page_size(self, page_size: usize) -> Self {
        Self { page_size: page_size.max(1), ..self }
    }

    fn fetch(&self, cursor: &str) -> Result<PageBody<T>, Error> {
        let page_len = self.left.min(self.page_size).to_string();
        let mut query = vec![("limit", page_len.as_str()), ("cursor", cursor)];
        query.extend(self.query.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        self.client.get(&self.path, &query)
    }
}

impl<T: DeserializeOwned> Iterator for Pages<'_, T> {
    type Item = Result<T, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.left > 0 {
            if let Some(item) = self.page.next() {
                self.left -= 1;
                return Some(Ok(item));
            }
            let cursor = self.cursor.take()?;
            match self.fetch(&cursor) {
                Ok(page) => {
                    self.page = page.items.into_iter();
                    self.cursor = page.next_cursor;
                }
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }
}
