-- What agents' use of tools taught the search. A lesson is one successful call after one query; what is old or too many
-- is deleted as new ones come.
CREATE TABLE search_lessons (
    id    INTEGER PRIMARY KEY,
    agent TEXT    NOT NULL,
    terms TEXT    NOT NULL, -- of the query: stems, sorted, with a blank between two
    tool  TEXT    NOT NULL,
    time  INTEGER NOT NULL  -- Unix seconds
);
CREATE INDEX search_lessons_like ON search_lessons (agent, terms, tool);
