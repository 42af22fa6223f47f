package searchtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hermesd/hermesd/search"
)

// field is one line of business: what its services deal with, and how people say that.
type field struct {
	name    string
	objects [][2]string // the word in names, and another for it
}

var businesses = []field{
	{"freight", [][2]string{{"shipment", "consignment"}, {"parcel", "package"}, {"carrier", "haulier"}, {"customs_form", "border declaration"}, {"pickup", "collection appointment"}, {"route", "itinerary"}, {"pallet", "loading unit"}, {"tracking_event", "delivery update"}, {"depot", "warehouse site"}, {"freight_rate", "shipping price"}}},
	{"clinic", [][2]string{{"patient", "person under care"}, {"appointment", "doctor's visit"}, {"prescription", "medicine order"}, {"lab_result", "blood test outcome"}, {"ward", "hospital unit"}, {"referral", "handover letter"}, {"allergy", "intolerance"}, {"vaccination", "immunization shot"}, {"insurance_claim", "coverage request"}, {"diagnosis", "finding of illness"}}},
	{"school", [][2]string{{"student", "pupil"}, {"course", "class"}, {"grade", "mark"}, {"assignment", "homework"}, {"timetable", "lesson plan"}, {"enrollment", "registration of a pupil"}, {"exam", "test paper"}, {"teacher", "instructor"}, {"absence", "missed day"}, {"classroom", "lecture hall"}}},
	{"hotel", [][2]string{{"booking", "reservation"}, {"room", "guest chamber"}, {"guest", "visitor"}, {"room_rate", "nightly price"}, {"housekeeping_task", "cleaning job"}, {"minibar_item", "in-room snack"}, {"check_in", "arrival"}, {"loyalty_account", "bonus membership"}, {"conference_hall", "event space"}, {"complaint", "grievance"}}},
	{"farm", [][2]string{{"field", "plot of land"}, {"crop", "planted variety"}, {"harvest", "yield"}, {"tractor", "farm machine"}, {"irrigation_plan", "watering schedule"}, {"livestock", "herd animal"}, {"feed_order", "fodder purchase"}, {"soil_sample", "ground analysis"}, {"greenhouse", "glass house"}, {"pesticide_log", "spraying record"}}},
	{"museum", [][2]string{{"exhibit", "artefact on display"}, {"loan_agreement", "lending contract"}, {"visitor_ticket", "admission pass"}, {"guided_tour", "walk with a docent"}, {"artist", "painter or sculptor"}, {"gallery", "show room"}, {"restoration", "repair of an artwork"}, {"donation", "gift of money"}, {"catalogue_entry", "inventory card"}, {"audio_guide", "recorded commentary"}}},
	{"energy", [][2]string{{"meter", "counter device"}, {"tariff", "price plan"}, {"outage", "power cut"}, {"solar_panel", "photovoltaic module"}, {"turbine", "wind machine"}, {"grid_node", "network junction"}, {"meter_reading", "consumption value"}, {"charging_station", "car plug point"}, {"battery", "storage cell"}, {"forecast", "prediction of demand"}}},
	{"sports", [][2]string{{"match", "game"}, {"player", "athlete"}, {"club", "team"}, {"season", "year of competition"}, {"referee", "umpire"}, {"stadium", "arena"}, {"transfer", "move to another team"}, {"injury", "physical problem"}, {"league_table", "standings"}, {"training_session", "practice"}}},
}

// act is what one tool does to an object, and how people say that.
type act struct {
	verb, said, text string
	params           []string
}

var acts = []act{
	{"create", "add a new", "Creates a %s in %s and returns its identifier.", []string{"title", "notes", "owner"}},
	{"list", "show all the", "Lists every %s in %s, page by page.", []string{"filter", "page_size", "cursor"}},
	{"get", "look up one", "Returns everything that is known about one %s in %s.", []string{"id"}},
	{"update", "change the details of a", "Changes an existing %s in %s; what is not given stays.", []string{"id", "title", "notes"}},
	{"delete", "get rid of a", "Removes a %s from %s for good.", []string{"id", "force"}},
	{"search", "find a matching", "Finds a %s in %s by free text.", []string{"text", "page_size"}},
	{"archive", "put away an old", "Archives a %s in %s so that it is no longer listed.", []string{"id", "reason"}},
	{"export", "download all data of each", "Exports %s data from %s as a file.", []string{"format", "since"}},
}

// Synthetic is a catalog of 40 services with 80 tools each, many of them alike but for their service, with two queries for
// every tool: one in its own words and one in other words. No query names a service: each is meant for an agent that has
// only one. Query.Kind is the service.
func Synthetic() *Set {
	s := &Set{Name: "synthetic"}
	for _, f := range businesses {
		for n := range 5 {
			service := fmt.Sprintf("%s%c", f.name, 'a'+n)
			for _, object := range f.objects {
				for _, a := range acts {
					s.add(service, object, &a)
				}
			}
		}
	}
	return s
}

func (s *Set) add(service string, object [2]string, a *act) {
	thing := strings.ReplaceAll(object[0], "_", " ")
	own := a.verb + "_" + object[0]
	properties := map[string]any{}
	for _, p := range a.params {
		properties[p] = map[string]string{"type": "string", "description": "The " + strings.ReplaceAll(p, "_", " ") + " of the " + thing}
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
	if err != nil {
		panic(err) // maps of texts are always JSON
	}
	d := search.Document{
		Name: fullName(service, own), OwnName: own, Source: service, Description: fmt.Sprintf(a.text, thing, service), Parameters: schema,
	}
	s.Docs = append(s.Docs, d)
	for _, text := range []string{a.verb + " " + thing, "I want to " + a.said + " " + object[1] + " please"} {
		s.Queries = append(s.Queries, Query{Query: text, Relevant: []string{d.Name}, Kind: service})
	}
}

// Kinds are the kinds of the set's queries, sorted.
func (s *Set) Kinds() []string {
	kinds := map[string]bool{}
	for i := range s.Queries {
		kinds[s.Queries[i].Kind] = true
	}
	return slices.Sorted(maps.Keys(kinds))
}

// Of returns the part of the set that is of one source and one kind of query.
func (s *Set) Of(source string) *Set {
	part := &Set{Name: s.Name + "/" + source}
	for _, d := range s.Docs {
		if d.Source == source {
			part.Docs = append(part.Docs, d)
		}
	}
	for _, q := range s.Queries {
		if q.Kind == source {
			part.Queries = append(part.Queries, q)
		}
	}
	return part
}
